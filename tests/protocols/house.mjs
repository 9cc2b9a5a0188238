// The house behind a server, for a chat client.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const program = process.env['UI_SERVER'];
if (!program) throw new Error('UI_SERVER names no program; tests/run builds it');

export const authorization = (name) => ({ authorization: `Bearer ${name}-0123456789abcdef0123456789` });

export async function open() {
  const scratch = mkdtempSync(join(tmpdir(), 'agentkit-protocols-'));
  const child = spawn(program, [`sqlite://${join(scratch, 'house.db')}?mode=rwc`, '0'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { value } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  const base = `http://${value.split(' ').at(-1)}`;
  return {
    base,
    async api(name, method, path, body) {
      const answer = await fetch(base + path, {
        method, headers: { ...authorization(name), 'content-type': 'application/json' }, ...(body ? { body: JSON.stringify(body) } : {}),
      });
      const text = await answer.text();
      return { status: answer.status, body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text };
    },
    /** Decides about what waits under this fingerprint, as at the inbox. */
    async decides(name, fingerprint, decision) {
      const { body } = await this.api(name, 'GET', '/v1/pending?limit=200');
      const { run, call } = body.pending.find((one) => one.fingerprint === fingerprint);
      return this.api(name, 'POST', `/v1/runs/${run}/calls/${call}/decision`, { fingerprint, ...decision });
    },
    close() {
      child.kill('SIGKILL');
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

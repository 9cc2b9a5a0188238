// A server, a browser, and people who sit before it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const axeFile = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const scratch = mkdtempSync(join(tmpdir(), 'agentkit-ui-'));
const program = process.env['UI_SERVER'];
if (!program) throw new Error('UI_SERVER names no program; tests/run builds it');

export const token = (name) => `${name}-0123456789abcdef0123456789`;

/** The house behind a server; `ask` waits until the request waits. */
export class House {
  static #number = 0;
  database = `sqlite://${join(scratch, `${(House.#number += 1)}.db`)}?mode=rwc`;
  port = 0;

  async open() {
    this.child = spawn(program, [this.database, String(this.port)], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
    const { value } = await this.lines.next();
    this.port = Number(value.split(':').at(-1));
    this.base = `http://127.0.0.1:${this.port}`;
    return this;
  }

  async ask(...calls) {
    this.child.stdin.write(`${calls.join('\\n')}\n`);
    await this.lines.next();
  }

  async api(name, method, path, body) {
    const answer = await fetch(this.base + path, {
      method, headers: { authorization: `Bearer ${token(name)}`, 'content-type': 'application/json' }, ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: answer.status, body: await answer.json() };
  }

  async close() {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await ended;
  }
}

let context;

/** A page of a person, signed in; errors of the page are failures. */
export async function person(house, name, options = {}) {
  context ??= await chromium.launchPersistentContext(join(scratch, 'profile'), {
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: FLAGS,
  });
  const own = await context.browser()?.newContext(options) ?? context;
  const page = await own.newPage();
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|net::ERR/.test(message.text())) page.faults.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(house.base)) page.faults.push(`a request to ${request.url()}`);
  });
  await page.goto(`${house.base}/inbox/`);
  await page.getByLabel('Access token').fill(token(name));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
  return page;
}

/** What axe finds, in words. */
export async function axe(page) {
  const { readFileSync } = await import('node:fs');
  // The page's own policy lets no script in; the debugger may.
  const client = await page.context().newCDPSession(page);
  await client.send('Runtime.evaluate', { expression: readFileSync(axeFile, 'utf8') });
  const { result } = await client.send('Runtime.evaluate', {
    awaitPromise: true, returnByValue: true,
    expression: `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html.slice(0, 160) + ' ' + node.failureSummary).join(' | ')))`,
  });
  return result.value;
}

export async function done() {
  await context?.browser()?.close();
  await context?.close().catch(() => {});
  rmSync(scratch, { recursive: true, force: true });
}

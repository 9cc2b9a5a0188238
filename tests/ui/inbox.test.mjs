// The inbox in a real browser: one test a rule.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after, afterEach, beforeEach, test } from 'node:test';
import { House, axe, done, person } from './browser.mjs';

const PAY = 'pay {"to":"bob","cents":4200}';
const NOTE = (to, body = 'Thank you.') => `send_note ${JSON.stringify({ to, body, channel: 'mail', cc: null })}`;
const shots = process.env['SHOTS'];
if (shots) mkdirSync(shots, { recursive: true });

let house;
let pages = [];
const sit = async (name, options) => {
  const page = await person(house, name, options);
  pages.push(page);
  return page;
};
const shot = async (page, name) => {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png` });
};
const heading = (page) => page.locator('#detail h2');
const rows = (page) => page.locator('#list li');
const pending = async (name) => (await house.api(name, 'GET', '/v1/pending')).body.pending;

beforeEach(async () => { house = await new House().open(); });
afterEach(async () => {
  const faults = pages.flatMap((page) => page.faults);
  for (const page of pages) await page.close();
  pages = [];
  await house.close();
  assert.deepEqual(faults, []);
});
after(done);

test('a request appears by itself and is approved with its fingerprint', async () => {
  const page = await sit('fiona');
  await page.getByText('Nothing waits.').waitFor();
  await house.ask(PAY);
  await rows(page).first().waitFor();
  await page.keyboard.press('j');
  await heading(page).getByText('pay').waitFor();
  await page.getByText('One person of finance looks at every payment.').waitFor();
  await page.keyboard.press('a');
  const dialog = page.getByRole('dialog');
  const approve = dialog.getByRole('button', { name: 'Approve for good' });
  assert.equal(await approve.isDisabled(), true, 'what cannot be undone takes more than a click');
  await page.keyboard.press('Enter');
  assert.equal((await pending('fiona')).length, 1);
  const code = await dialog.locator('label code').innerText();
  await dialog.getByRole('textbox').fill(code);
  await approve.click();
  await page.locator('.outcome').waitFor();
  await page.locator('.outcome', { hasText: 'Done' }).waitFor();
  assert.deepEqual(await pending('fiona'), []);
});

test('a decline carries its reason', async () => {
  await house.ask(PAY);
  const [{ run, call }] = await pending('fiona');
  const page = await sit('fiona');
  await rows(page).first().getByRole('button').click();
  await heading(page).getByText('pay').waitFor();
  await page.keyboard.press('d');
  await page.getByLabel('Reason').fill('Bob was paid already');
  await page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click();
  await page.locator('.outcome', { hasText: 'Declined' }).waitFor();
  const { body } = await house.api('fiona', 'GET', `/v1/runs/${run}/calls/${call}`);
  assert.match(body.outcome, /Bob was paid already/);
});

test('of two people who decide at once one wins, and the other is told', async () => {
  await house.ask(PAY);
  const [fiona, felix] = [await sit('fiona'), await sit('felix')];
  for (const page of [fiona, felix]) {
    await rows(page).first().getByRole('button').click();
    await heading(page).getByText('pay').waitFor();
  }
  await felix.keyboard.press('d');
  await felix.getByLabel('Reason').fill('no');
  await fiona.keyboard.press('a');
  await fiona.getByRole('dialog').getByRole('textbox').fill(await fiona.locator('dialog label code').innerText());
  await Promise.all([
    fiona.evaluate(() => document.querySelector('dialog form').requestSubmit()),
    felix.evaluate(() => document.querySelector('dialog form').requestSubmit()),
  ]);
  for (const page of [fiona, felix]) await page.locator('.outcome', { hasText: /Done|Running|Approved|Declined/ }).waitFor();
  const texts = await Promise.all([fiona, felix].map((page) => page.locator('.outcome').innerText()));
  assert.equal(new Set(texts.map((text) => /felix/.test(text))).size, 1, texts.join(' / '));
});

test('what was decided elsewhere shows, and cannot be decided again', async () => {
  await house.ask(PAY);
  const page = await sit('fiona');
  await rows(page).first().getByRole('button').click();
  await heading(page).getByText('pay').waitFor();
  await page.keyboard.press('a');
  const [{ run, call, fingerprint }] = await pending('felix');
  await house.api('felix', 'POST', `/v1/runs/${run}/calls/${call}/decision`, { decision: 'decline', fingerprint });
  await page.locator('.outcome', { hasText: 'felix declined it' }).waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.keyboard.press('a');
  assert.equal(await page.getByRole('dialog').count(), 0);
});

test('a request survives a reload of the page and a restart of the server', async () => {
  await house.ask(PAY);
  const page = await sit('fiona');
  await rows(page).first().getByRole('button').click();
  await heading(page).getByText('pay').waitFor();
  await page.reload();
  await heading(page).getByText('pay').waitFor();
  await house.close();
  await page.getByText('Reconnecting…').waitFor();
  await house.open();
  await page.getByText('Live', { exact: true }).waitFor({ timeout: 30_000 });
  await heading(page).getByText('pay').waitFor();
  await page.keyboard.press('a');
  await page.getByRole('dialog').getByRole('textbox').fill(await page.locator('dialog label code').innerText());
  await page.getByRole('button', { name: 'Approve for good' }).click();
  await page.locator('.outcome', { hasText: 'Done' }).waitFor();
});

test('an amendment is a form, keeps every digit, and is approved anew', async () => {
  await house.ask('pay {"to":"bob","cents":4200}');
  const page = await sit('fiona');
  await rows(page).first().getByRole('button').click();
  await heading(page).getByText('pay').waitFor();
  await page.keyboard.press('m');
  await page.getByLabel('cents', { exact: true }).fill('4,2');
  await page.getByRole('button', { name: 'Amend', exact: true }).click();
  await page.getByText('is not a whole number').waitFor();
  await page.getByLabel('cents', { exact: true }).fill('9007199254740993');
  await shot(page, 'amend-light');
  await page.getByRole('button', { name: 'Amend', exact: true }).click();
  await page.getByText('This request has changed since you opened it').waitFor();
  const [one] = await pending('fiona');
  assert.equal(one.arguments_text, '{"cents":9007199254740993,"to":"bob"}');
  assert.equal(await page.locator('.arguments .number').innerText(), '9007199254740993');
});

test('a question is answered by whoever asked, in a form of its schema', async () => {
  await house.ask('book_seat {"train":"ICE 1"}');
  const page = await sit('clara');
  await rows(page).first().getByRole('button').click();
  await page.locator('#detail').getByText('Which seat on ICE 1?').waitFor();
  await page.getByLabel('seat', { exact: true }).fill('21');
  await page.getByRole('button', { name: 'Answer' }).click();
  await page.getByText('choose yes or no').waitFor();
  await page.getByLabel('window', { exact: true }).selectOption('Yes');
  await shot(page, 'question-light');
  await page.getByRole('button', { name: 'Answer' }).click();
  await page.locator('.outcome', { hasText: 'Done' }).waitFor();
});

test('several are approved together only when they are of one tool and can be undone', async () => {
  for (const name of ['ada', 'bea', 'cyd']) await house.ask(NOTE(name));
  await house.ask(PAY);
  await house.ask('pay {"to":"eve","cents":1}');
  const page = await sit('fiona');
  await rows(page).nth(4).waitFor();
  assert.equal(await page.getByRole('checkbox').count(), 3, 'payments have none');
  for (const box of await page.getByRole('checkbox').all()) await box.check();
  await shot(page, 'batch-light');
  await page.getByRole('button', { name: 'Approve 3…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve 3' }).click();
  await rows(page).nth(2).waitFor({ state: 'detached' });
  assert.deepEqual((await pending('fiona')).map((one) => one.tool), ['pay', 'pay']);
});

test('hostile text is shown for what it is and does nothing', async () => {
  await house.ask(NOTE('p\u0430ypal\u202etxt.exe', '<img src=x onerror="window.hit=1">\u200b<script>window.hit=1</script>\u0000\u001b[31m' + 'A'.repeat(5000)));
  const page = await sit('fiona');
  await rows(page).first().getByRole('button').click();
  await heading(page).getByText('send_note').waitFor();
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator('#detail img').count(), 0);
  const text = await page.locator('.arguments').innerText();
  for (const shown of ['U+202E', 'U+200B', 'U+0000', 'U+001B', '<img src=x']) assert.ok(text.includes(shown), `${shown} in ${text.slice(0, 400)}`);
  assert.equal(text.includes('\u202e'), false);
  assert.ok(await page.locator('.arguments .confusable').count() > 0);
  assert.ok(text.length < 3000, 'what is endless is cut');
  await page.getByText('Contains characters that reorder text').waitFor();
  await shot(page, 'hostile-light');
});

test('whoever may not approve sees why, and strangers see nothing', async () => {
  await house.ask(PAY);
  const clara = await sit('clara');
  await clara.getByLabel('Show', { exact: true }).selectOption('all');
  await rows(clara).first().getByRole('button').click();
  await clara.getByText('You cannot decide this.').waitFor();
  assert.equal(await clara.getByRole('button', { name: /^Approve/ }).count(), 0);
  const eve = await sit('eve');
  await eve.getByText('Nothing waits.').waitFor();
});

test('it is accessible, in light and dark, wide and narrow', async () => {
  await house.ask(NOTE('ada', 'Thank you for your order.'));
  const [earlier] = await pending('fiona');
  await house.api('fiona', 'POST', `/v1/runs/${earlier.run}/calls/${earlier.call}/decision`, { decision: 'approve', fingerprint: earlier.fingerprint });
  await house.ask(NOTE('ada', 'Your order is on its way.'));
  await house.ask('pay {"to":"Bright Ideas Ltd","cents":4200}');
  await house.ask('pay {"to":"Harbour & Sons","cents":1250000}');
  await house.ask('read_file {"customer":"c-1042"}');
  const found = [];
  for (const [name, options] of [
    ['light', { viewport: { width: 1280, height: 860 }, colorScheme: 'light' }],
    ['dark', { viewport: { width: 1280, height: 860 }, colorScheme: 'dark' }],
    ['narrow', { viewport: { width: 390, height: 844 }, colorScheme: 'light' }],
  ]) {
    const page = await sit('fiona', options);
    await rows(page).nth(3).waitFor();
    await shot(page, `queue-${name}`);
    found.push(...await axe(page));
    for (const tool of ['send_note', 'pay']) {
      await rows(page).filter({ hasText: tool }).last().getByRole('button').click();
      await heading(page).getByText(tool).waitFor();
      await shot(page, `${tool}-${name}`);
      found.push(...await axe(page));
      if (name === 'narrow') await page.getByRole('button', { name: '← Queue' }).click();
    }
    if (name !== 'narrow') {
      await page.keyboard.press('a');
      await page.getByRole('dialog').waitFor();
      await shot(page, `confirm-${name}`);
      found.push(...await axe(page));
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await page.getByText('next request').waitFor();
      await page.keyboard.press('Escape');
    }
  }
  assert.deepEqual(found, []);
});

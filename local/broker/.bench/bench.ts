import { ServiceBusClient } from '@azure/service-bus';
import Long from 'long';
import { fork } from 'node:child_process';
import { parseConfig, startBroker } from '../index.ts';
const cfg = parseConfig({ UserConfig: { Namespaces: [{ Queues: [{ Name: 'q', Properties: { MaxDeliveryCount: 2000, LockDuration: 'PT5M' } }] }] } });
let cs = process.env.CS;
if (process.argv[2] === 'broker') { const b = await startBroker({ config: cfg }); process.send!({ cs: b.connectionString }); process.on('message', (m) => { if (m==='rss') process.send!({ rss: process.memoryUsage() }); b.recreate('q'); process.send!('ok'); }); }
else {
  let recreate: () => Promise<void>; let end: () => void;
  if (process.argv[2] === 'child') { const c = fork(import.meta.filename, ['broker']); cs = (await new Promise<any>((r) => c.once('message', r))).cs; recreate = () => new Promise((r) => { c.once('message', () => r()); c.send('x'); }); end = () => c.kill(); }
  else { const b = await startBroker({ config: cfg }); cs = b.connectionString; recreate = async () => b.recreate('q'); end = () => void b.close(); }
  const client = new ServiceBusClient(cs!, { retryOptions: { maxRetries: 0, timeoutInMs: 20000 } });
  const sender = client.createSender('q');
  const body = { id: 1, text: 'x'.repeat(180) };
  const t = async (n: string, count: number, f: () => Promise<unknown>) => { const s = performance.now(); await f(); const ms = performance.now() - s; console.log(n.padEnd(45), Math.round((count / ms) * 1000), '/s'); };
  const fill = async (n: number) => { await recreate(); for (let i = 0; i < n; i += 500) await sender.sendMessages(Array.from({ length: 500 }, () => ({ body }))); };
  await sender.sendMessages({ body });
  await t('send single sequential', 2000, async () => { for (let i = 0; i < 2000; i++) await sender.sendMessages({ body }); });
  await t('send 50 in flight', 10000, async () => { let n = 0; await Promise.all(Array.from({ length: 50 }, async () => { while (n++ < 10000) await sender.sendMessages({ body }); })); });
  await t('send arrays of 100', 20000, async () => { for (let i = 0; i < 200; i++) await sender.sendMessages(Array.from({ length: 100 }, () => ({ body }))); });
  const r = client.createReceiver('q', { maxAutoLockRenewalDurationInMs: 0 });
  await t('peek 250/page', 10000, async () => { let from = Long.ONE; for (let i = 0; i < 40; i++) { const p = await r.peekMessages(250, { fromSequenceNumber: from }); from = p.at(-1)!.sequenceNumber!.add(1); } });
  for (const conc of [1, 10, 100]) { const n = conc === 1 ? 3000 : 10000; await fill(n); let seen = 0; const rec = client.createReceiver('q', { maxAutoLockRenewalDurationInMs: 0 }); await t(`subscribe autocomplete ${conc}`, n, () => new Promise<void>((res) => rec.subscribe({ processMessage: async () => { if (++seen === n) res(); }, processError: async (e) => console.log(e.error) }, { maxConcurrentCalls: conc }))); await rec.close(); }
  await fill(10000);
  await t('receive(500)+complete all at once', 10000, async () => { for (let i = 0; i < 10000; ) { const m = await r.receiveMessages(500, { maxWaitTimeInMs: 2000 }); i += m.length; await Promise.all(m.map((x) => r.completeMessage(x))); } });
  await fill(4000);
  await t('receive(500)+complete sequential', 4000, async () => { for (let i = 0; i < 4000; ) { const m = await r.receiveMessages(500, { maxWaitTimeInMs: 2000 }); i += m.length; for (const x of m) await r.completeMessage(x); } });
  await fill(10000);
  const d = client.createReceiver('q', { receiveMode: 'receiveAndDelete' });
  await t('receiveAndDelete(1000)', 10000, async () => { for (let i = 0; i < 10000; ) i += (await d.receiveMessages(1000, { maxWaitTimeInMs: 2000 })).length; }); await d.close();
  await fill(5000);
  await t('receive+deadletter sequential', 3000, async () => { for (let i = 0; i < 3000; ) { const m = await r.receiveMessages(500, { maxWaitTimeInMs: 2000 }); i += m.length; for (const x of m) await r.deadLetterMessage(x, { deadLetterReason: 'r', deadLetterErrorDescription: 'd' }); } });
  await fill(5000); const nums: Long[] = [];
  await t('receive+defer all at once', 5000, async () => { for (let i = 0; i < 5000; ) { const m = await r.receiveMessages(500, { maxWaitTimeInMs: 2000 }); i += m.length; await Promise.all(m.map((x) => (nums.push(x.sequenceNumber!), r.deferMessage(x)))); } });
  const got: any[] = [];
  await t('receiveDeferred 100', 5000, async () => { for (let i = 0; i < 5000; i += 100) got.push(...await r.receiveDeferredMessages(nums.slice(i, i + 100))); });
  await t('complete via mgmt sequential', 1000, async () => { for (let i = 0; i < 1000; i++) await r.completeMessage(got[i]); });
  await t('complete via mgmt 100 parallel', 4000, async () => { for (let i = 1000; i < 5000; i += 100) await Promise.all(got.slice(i, i + 100).map((m) => r.completeMessage(m))); });
  await client.close(); end();
}

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig, type RunningBroker, startBroker } from '../../local/broker/index.ts';
import { BELIEFS } from './beliefs/index.ts';
import { runBeliefs } from './run.ts';
import type { Target } from './target.ts';
import { administrationOf } from './targets/administration.ts';
import { remoteTarget } from './targets/remote.ts';

const LISTEN = { name: 'listen', key: 'bGlzdGVu', rights: ['Send', 'Listen'] } as const;
const some = BELIEFS.filter(({ id }) => ['B07', 'B70', 'B77', 'B83'].includes(id));
let broker: RunningBroker;

beforeAll(async () => {
  const queues = ['plain', 'spare'].map((Name) => ({ Name, Properties: { MaxDeliveryCount: 3 } }));
  const config = parseConfig({ UserConfig: { Namespaces: [{ Name: 'sbemulatorns', Queues: queues }] } });
  broker = await startBroker({ config, sasKeys: [LISTEN] });
});
afterAll(() => broker.close());

const options = () => ({
  connectionString: broker.connectionString,
  name: undefined,
  named: undefined,
  adminPort: broker.adminPort,
  say: () => {},
});
const outcomesOf = async (target: Target, beliefs = some) =>
  Object.fromEntries([...(await runBeliefs(target, beliefs, () => {}))].map(([id, { outcome }]) => [id, outcome]));

describe('a namespace that is not ours', () => {
  it('gets entities of our own, which are removed again', async () => {
    const target = await remoteTarget(options());
    const passed = { B07: 'passed', B70: 'passed', B77: 'passed', B83: 'not-checkable' };
    expect([target.column, await outcomesOf(target)]).toEqual(['emulator', passed]);
    const left: string[] = [];
    const client = administrationOf(broker.connectionString, broker.adminPort);
    for await (const { name } of client.listQueues()) left.push(name);
    for await (const { name } of client.listTopics()) left.push(name);
    expect(left.sort()).toEqual(['plain', 'spare']);
  });

  it('is tested on named entities where none may be made; what is not named is not checkable', async () => {
    const connectionString = broker.connectionStringWith(LISTEN.name);
    await expect(remoteTarget({ ...options(), connectionString })).rejects.toThrow('--entities');
    const target = await remoteTarget({ ...options(), connectionString, named: { plain: 'plain' } });
    expect(await outcomesOf(target, some.slice(0, 2))).toEqual({ B07: 'passed', B70: 'not-checkable' });
  });
});

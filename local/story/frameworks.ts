/** Letters as messaging frameworks leave them: none of them says in its reason why it died, their headers and bodies do. */
import type { ServiceBusMessage } from '@azure/service-bus';
import { answers } from './answers.ts';
import { expectSame } from './check.ts';
import { becomes } from './desk.ts';
import type { Scene } from './scene.ts';
import { consume, type Place } from './shop.ts';

const QUEUE = 'warehouse.stock-reserved';
const PLACE: Place = [QUEUE];
const SOURCE = '/sources/warehouse-stock-reserved';

/** Their headers are written by hand here, after their documented formats; `test/fixtures/letters` has many more. */
const LETTERS: readonly (ServiceBusMessage & { readonly messageId: string })[] = [
  {
    messageId: 'by-masstransit',
    contentType: 'application/vnd.masstransit+json',
    body: { messageType: ['urn:message:Warehouse:ReserveStock'], message: { sku: 'b-17' } },
    applicationProperties: {
      'MT-Reason': 'fault',
      'MT-Fault-ExceptionType': 'System.TimeoutException',
      'MT-Fault-Message': 'The stock API did not answer within 30 s',
      'MT-Fault-ConsumerType': 'Warehouse.ReserveStockConsumer',
      'MT-Fault-Timestamp': '2026-11-30T12:02:07Z',
      'MT-Fault-RetryCount': 3,
      'MT-Fault-StackTrace':
        '   at System.Net.Http.HttpClient.HandleFailure(Exception e)\n' +
        '   at Warehouse.StockApi.Reserve(String sku) in /src/Warehouse/StockApi.cs:line 42\n' +
        '   at MassTransit.Consumer.Send(ConsumeContext context)',
    },
  },
  {
    messageId: 'by-nservicebus',
    body: '<ReserveStock/>',
    applicationProperties: {
      'NServiceBus.TimeOfFailure': '2026-11-30 12:02:07:000462 Z',
      'NServiceBus.ExceptionInfo.ExceptionType': 'System.Exception',
      'NServiceBus.ExceptionInfo.InnerExceptionType': 'Newtonsoft.Json.JsonReaderException',
    },
  },
  {
    messageId: 'by-babelqueue',
    body: {
      job: 'urn:babel:stock:reserved',
      data: {},
      dead_letter: { reason: 'failed', error: 'Undefined array key', exception: 'ErrorException', attempts: 3 },
    },
  },
];

export async function whatFrameworksWrite(scene: Scene): Promise<void> {
  const { client, desk, step } = scene;
  step('Three more letters, in another queue, with the same poor reason. What killed them?');
  const sender = client.createSender(QUEUE);
  try {
    await sender.sendMessages([...LETTERS]);
  } finally {
    await sender.close();
  }
  await consume(client, PLACE, LETTERS.length, () => ({
    kind: 'dead-letter',
    reason: 'Failed',
    description: 'see the log',
  }));
  const path = `${SOURCE}/letters`;
  const look = async () => {
    await desk.collect('warehouse-stock-reserved');
    return (await desk.look(path, answers.numbers)).letters.length;
  };
  await becomes('the letters of the frameworks are recorded', look, LETTERS.length);
  const { letters } = await desk.show({ method: 'GET', path, key: 'read' }, 200, answers.causes);
  const told = letters.map(({ messageId, rule, advice }) => `${messageId} ${rule} ${advice}`).sort();
  expectSame('causes and advice', told, [
    'by-babelqueue exception:code fix-first',
    'by-masstransit exception:timeout replay',
    'by-nservicebus exception:deserialisation fix-first',
  ]);
  const numbers = await desk.look(`${path}?messageId=by-masstransit`, answers.numbers);
  const one = `${path}/${numbers.letters[0]?.sequenceNumber}`;
  const letter = await desk.show({ method: 'GET', path: one, key: 'read' }, 200, answers.evidence);
  expectSame('what MassTransit wrote', letter, {
    messageId: 'by-masstransit',
    dialects: ['masstransit', 'service-bus'],
    evidence: {
      exceptionType: 'System.TimeoutException',
      exceptionMessage: 'The stock API did not answer within 30 s',
      frame: 'Warehouse.StockApi.Reserve (StockApi.cs:42)',
      consumer: 'Warehouse.ReserveStockConsumer',
      attempts: 4,
    },
  });
}

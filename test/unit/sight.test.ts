import { describe, expect, test } from 'vitest';
import { toProperty } from '../../shared/brokers/serviceBus/propertyValue.ts';
import { LetterBody, MAX_BODY } from '../../shared/classify/body.ts';
import type { Dialect } from '../../shared/classify/evidence.ts';
import { classify, DIALECTS } from '../../shared/classify/index.ts';
import { present } from '../../shared/classify/text.ts';
import type { BodyKind, LetterProperty } from '../../shared/letter.ts';
import { types } from '../harness/typedMessage.ts';
import { aSight } from '../harness/values.ts';

describe('a body', () => {
  const body = (sections: Buffer[], kind: BodyKind = 'data') => {
    let asked = 0;
    const bytes = sections.reduce((sum, { length }) => sum + length, 0);
    const one = new LetterBody({ kind, bytes }, () => {
      asked++;
      return sections;
    });
    return { one, asked: () => asked };
  };

  test('is decoded when somebody asks, and once', () => {
    const { one, asked } = body([Buffer.from('{"a":1}')]);
    expect(asked()).toBe(0);
    expect([one.includes('"a"'), one.json(), one.json(), asked()]).toEqual([true, { a: 1 }, { a: 1 }, 1]);
    expect(one.isUnread).toBe(false);
  });

  test('of several sections is read as one', () => {
    expect(body([Buffer.from('{"a"'), Buffer.from(':1}')], 'data-several').one.json()).toEqual({ a: 1 });
  });

  test('with a byte order mark is JSON, in another encoding or broken it is none', () => {
    expect(body([Buffer.from('\ufeff[1]')]).one.json()).toEqual([1]);
    for (const bytes of [
      Buffer.from('[1]', 'utf16le'),
      Buffer.from([0x22, 0xff, 0x22]),
      Buffer.from('[1'),
      Buffer.alloc(0),
    ]) {
      expect(body([bytes]).one.json()).toBeUndefined();
    }
  });

  test('that is larger than the cap is never asked for, and says so once it was wanted', () => {
    const { one, asked } = body([Buffer.alloc(MAX_BODY + 1, 0x20)]);
    expect(one.isUnread).toBe(false);
    expect([one.json(), one.includes(' '), one.isUnread, asked()]).toEqual([undefined, false, true, 0]);
    const fitting = body([Buffer.from(`[${' '.repeat(MAX_BODY - 2)}]`)]);
    expect([fitting.one.json(), fitting.one.isUnread]).toEqual([[], false]);
  });

  test('of AMQP values, or that is not at hand, or that cannot be taken apart, is unread', () => {
    expect(
      [body([Buffer.from('1')], 'value').one, new LetterBody({ kind: 'data', bytes: 1 })].map((one) => [
        one.json(),
        one.isUnread,
      ]),
    ).toEqual([
      [undefined, true],
      [undefined, true],
    ]);
    const broken = new LetterBody({ kind: 'data', bytes: 1 }, () => {
      throw new Error('no');
    });
    expect([broken.json(), broken.isUnread]).toEqual([undefined, true]);
  });

  test('that is not there leaves nothing unread', () => {
    const none = new LetterBody({ kind: 'none', bytes: 0 }, () => []);
    expect([none.json(), none.isUnread]).toEqual([undefined, false]);
  });
});

describe('a property', () => {
  const sight = (...properties: LetterProperty[]) => aSight({ properties });

  test('is asked for by its exact name; the last of a name counts', () => {
    const one = sight({ name: 'a', type: 'string', value: '1' }, { name: 'a', type: 'string', value: '2' });
    expect([one.text('a'), one.text('A'), one.text('__proto__')]).toEqual(['2', undefined, undefined]);
  });

  test('is a text only of a text type', () => {
    const types = ['string', 'symbol', 'uuid', 'char', 'binary', 'list', 'timestamp', 'unreadable'];
    expect(types.filter((type) => sight({ name: 'a', type, value: 'x' }).text('a') === 'x')).toEqual(types.slice(0, 4));
  });

  test.each([
    [3, 3],
    ['17', 17],
    [-1, undefined],
    [1.5, undefined],
    ['1e3', undefined],
    ['99999999999', undefined],
    [Number.NaN, undefined],
    [true, undefined],
    [null, undefined],
  ])('as a count, %j is %j', (value, expected) => {
    expect(sight({ name: 'a', type: 'int', value }).count('a')).toBe(expected);
  });

  test.each([
    ['2026-04-20T16:30:00Z', Date.UTC(2026, 3, 20, 16, 30)],
    ['2026-04-20T16:30:00.1234567+02:00', Date.UTC(2026, 3, 20, 14, 30, 0, 123)],
    ['1776702600000', 1776702600000],
    ['2026-04-20T16:30:00', undefined],
    ['2026-99-99T99:99:99Z', undefined],
    ['4/20/2026 4:30 PM', undefined],
    [-5, undefined],
    [1e300, undefined],
  ])('as a time, %j is %j', (value, expected) => {
    expect(sight({ name: 'a', type: 'string', value }).time('a')).toBe(expected);
  });

  test('that is longer than was asked for is cut, and the classification says so', () => {
    const one = sight({ name: 'a', type: 'string', value: 'x'.repeat(600) });
    expect(one.text('a')).toHaveLength(512);
    expect(one.unread).toEqual(['properties.a']);
  });
});

describe('header families of other brokers fit in', () => {
  /** As RabbitMQ has it: an array of tables, the newest death first. */
  const rabbitMq: Dialect = {
    name: 'rabbitmq',
    layer: 'broker',
    read(sight) {
      const deaths = sight.nested('x-death');
      const [first] = Array.isArray(deaths) ? (deaths as Record<string, unknown>[]) : [];
      if (first === undefined) return undefined;
      const isLimit = first.reason === 'delivery_limit';
      return {
        ...(typeof first.queue === 'string' && { consumer: first.queue }),
        mechanism: isLimit ? 'delivery-limit' : first.reason === 'expired' ? 'expired' : 'dead-lettered',
      };
    },
  };
  /** As Spring for Kafka has it: every value is bytes, numbers big-endian. */
  const springKafka: Dialect = {
    name: 'spring-kafka',
    layer: 'framework',
    read(sight) {
      const text = (name: string) => sight.bytes(name)?.toString('utf8');
      const time = sight.bytes('kafka_dlt-original-timestamp');
      if (text('kafka_dlt-exception-fqcn') === undefined) return undefined;
      return present({
        exceptionType: text('kafka_dlt-exception-fqcn'),
        causeType: text('kafka_dlt-exception-cause-fqcn'),
        consumer: text('kafka_dlt-original-consumer-group'),
        failedAt: time?.length === 8 ? Number(time.readBigInt64BE()) : undefined,
      });
    },
  };
  const encoded = (name: string, value: ReturnType<typeof types.Str8>) => {
    const writer = new types.Writer();
    writer.write(value);
    return toProperty(name, writer.toBuffer());
  };

  test('lists of tables, and bytes: as two more dialects, and nothing else changes', () => {
    const time = Buffer.alloc(8);
    time.writeBigInt64BE(1776702600000n);
    const bytes = (name: string, value: string | Buffer) => encoded(name, types.Vbin8(Buffer.from(value)));
    const deaths = [{ queue: 'payments', reason: 'expired', count: 1 }];
    const properties = [
      { name: 'x-death', type: 'list', value: JSON.stringify(deaths) },
      bytes('kafka_dlt-exception-fqcn', 'org.springframework.kafka.listener.ListenerExecutionFailedException'),
      bytes('kafka_dlt-exception-cause-fqcn', 'java.net.SocketTimeoutException'),
      bytes('kafka_dlt-original-consumer-group', 'order-process'),
      bytes('kafka_dlt-original-timestamp', time),
    ];
    const found = classify(aSight({ reason: undefined, description: undefined, properties }), [
      rabbitMq,
      springKafka,
      ...DIALECTS,
    ]);
    expect(found.dialects).toEqual(['spring-kafka', 'rabbitmq']);
    expect(found).toMatchObject({
      rule: 'system:expired',
      evidence: {
        mechanism: 'expired',
        exceptionType: 'org.springframework.kafka.listener.ListenerExecutionFailedException',
        causeType: 'java.net.SocketTimeoutException',
        consumer: 'order-process',
        failedAt: 1776702600000,
      },
    });
  });

  test('a nested value that is cut or too large is passed over', () => {
    const value = (text: string) => aSight({ properties: [{ name: 'x-death', type: 'list', value: text }] });
    expect(value('[{"a":').nested('x-death')).toBeUndefined();
    const large = value(`[${'1,'.repeat(20_000)}1]`);
    expect([large.nested('x-death'), large.unread]).toEqual([undefined, ['properties.x-death']]);
  });
});

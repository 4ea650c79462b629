import type { ServiceBusReceivedMessage } from '@azure/service-bus';
import { describe, expect, it } from 'vitest';
import { toInvocation } from '../../local/host/serviceBusMessage.ts';

type Parts = Partial<Record<keyof ServiceBusReceivedMessage, unknown>>;

/** A received message with only the parts that matter to a test. */
function message(parts: Parts, bodyType = 'data', raw = {}): ServiceBusReceivedMessage {
  const whole = { body: Buffer.from('x'), ...parts, _rawAmqpMessage: { bodyType, ...raw } };
  return whole as unknown as ServiceBusReceivedMessage;
}

describe('metadata of a Service Bus message', () => {
  it('carries all digits of the sequence number; the library rounds them', () => {
    const sequenceNumber = { toString: () => '31806672368316473' };
    expect(toInvocation(message({ sequenceNumber }), undefined).metadata?.SequenceNumber).toEqual({
      json: '31806672368316473',
    });
  });

  it.each([
    [{ timeToLive: 1000, expiresAtUtc: new Date('2026-01-02T03:04:05.500Z') }, {}, '2026-01-02T03:04:05.5Z'],
    [{}, {}, '9999-12-31T23:59:59.9999999Z'],
    [{}, { properties: { absoluteExpiryTime: Date.UTC(2026, 0, 1) } }, '2026-01-01T00:00:00Z'],
  ])('says when the message expires: %j %j', (parts, raw, expected) => {
    expect(toInvocation(message(parts, 'data', raw), undefined).metadata?.ExpiresAtUtc).toEqual({ string: expected });
  });

  it('shows property values as .NET would write them', () => {
    const long = Buffer.alloc(8);
    long.writeBigInt64BE(-(2n ** 60n));
    const guid = Buffer.from('0f8fad5bd9cb469fa16570867728950e', 'hex');
    const applicationProperties = { long, guid, at: new Date('2026-01-02T00:00:00Z'), yes: true };
    const json = toInvocation(message({ applicationProperties }), undefined).metadata?.ApplicationProperties?.json;
    expect(JSON.parse(json ?? '')).toEqual({
      long: -(2 ** 60),
      guid: '0f8fad5b-d9cb-469f-a165-70867728950e',
      at: '2026-01-02T00:00:00Z',
      yes: true,
    });
  });
});

describe('the body of a Service Bus message', () => {
  it('is text, from bytes or an AMQP value', () => {
    expect(toInvocation(message({ body: Buffer.from('{"a":1}') }), undefined).data).toEqual({ string: '{"a":1}' });
    expect(toInvocation(message({ body: 'told' }, 'value'), undefined).data).toEqual({ string: 'told' });
  });

  it('may be bytes', () => {
    const body = Buffer.from([1, 2]);
    expect(toInvocation(message({ body }), 'binary').data).toEqual({ bytes: body });
  });

  it.each([
    [7, 'value', undefined],
    [[1], 'sequence', undefined],
    ['told', 'value', 'binary'],
  ])('that .NET could not bind is refused: %j as %s', (body, bodyType, dataType) => {
    expect(() => toInvocation(message({ body }, bodyType), dataType)).toThrow('cannot be bound');
  });
});

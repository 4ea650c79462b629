import { describe, expect, it } from 'vitest';
import { errorText } from '../../shared/errors.ts';

describe('the text of an error', () => {
  it('tells its causes, each once', () => {
    const cause = new Error('the socket was closed');
    const error = new Error('the broker does not answer', {
      cause: new Error('no answer: the socket was closed', { cause }),
    });
    expect(errorText(error)).toBe('the broker does not answer: no answer: the socket was closed');
  });

  it('tells condition and description of what AMQP libraries throw', () => {
    const refusal = { condition: 'amqp:not-found', description: 'there is no such queue', info: undefined };
    expect(errorText(new Error('the receive link was detached', { cause: refusal }))).toBe(
      'the receive link was detached: amqp:not-found: there is no such queue',
    );
    expect(errorText({ condition: 'amqp:internal-error' })).toBe('amqp:internal-error');
    expect(errorText({ message: 'no error at all' })).toBe('no error at all');
  });

  it.each([
    ['a text', 'because', 'because'],
    ['nothing', null, 'null'],
    ['an object that says nothing', {}, '[object Object]'],
    ['an object without a way to text', Object.create(null), 'object'],
    ['an error without a message', new TypeError(''), 'TypeError'],
  ])('has words for %s', (_name, thrown, text) => {
    expect(errorText(thrown)).toBe(text);
  });

  it('ends where causes go in circles, and is cut', () => {
    const error = new Error('again');
    error.cause = error;
    expect(errorText(error)).toBe('again');
    expect(errorText(new Error('x'.repeat(50)), 10)).toHaveLength(10);
  });
});

import { describe, expect, it } from 'vitest';
import { encodeBatch, readBatch } from '../../shared/store/batch.ts';

const URL = 'http://127.0.0.1:1/account/letters';

/** The requests in a body: start line, headers, and the row. */
function requestsIn(body: string) {
  return body
    .split('--changeset_1\r\n')
    .slice(1)
    .map((part) => {
      const [, request = ''] = part.split('content-transfer-encoding: binary\r\n\r\n');
      const [head = '', row = ''] = request.split('\r\n\r\n');
      const [start, ...headers] = head.split('\r\n');
      const json = row.split('\r\n')[0];
      return { start, headers, row: json ? (JSON.parse(json) as unknown) : undefined };
    });
}

function answer(...parts: string[]): string {
  const each = parts.map(
    (part) =>
      `--changesetresponse_x\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n${part}\r\n`,
  );
  const head = '--batchresponse_y\r\nContent-Type: multipart/mixed; boundary=changesetresponse_x\r\n\r\n';
  return `${head}${each.join('')}--changesetresponse_x--\r\n--batchresponse_y--\r\n`;
}

describe('a transaction as one request', () => {
  it('says of each step what is to be done with which row, and on which condition', () => {
    const row = { partitionKey: 'p', rowKey: 'r', a: 1 };
    const requests = requestsIn(
      encodeBatch(
        URL,
        [
          { kind: 'insert', row },
          { kind: 'replace', row },
          { kind: 'merge', row },
          { kind: 'merge', row, etag: 'W/"7"' },
          { kind: 'delete', partitionKey: 'p', rowKey: 'r' },
        ],
        '1',
      ),
    );
    const address = `${URL}(PartitionKey='p',RowKey='r') HTTP/1.1`;
    expect(requests.map(({ start }) => start)).toEqual([
      `POST ${URL} HTTP/1.1`,
      `PUT ${address}`,
      `PATCH ${address}`,
      `PATCH ${address}`,
      `DELETE ${address}`,
    ]);
    expect(requests.map(({ headers }) => headers.filter((one) => /^(If-Match|Prefer)/.test(one)))).toEqual([
      ['Prefer: return-no-content'],
      [],
      [],
      ['If-Match: W/"7"'],
      ['If-Match: *'],
    ]);
    expect(requests.map((one) => one.row)).toEqual([
      ...Array(4).fill({ PartitionKey: 'p', RowKey: 'r', a: 1 }),
      undefined,
    ]);
  });

  it('writes times with their type and leaves out cells without value', () => {
    const row = { partitionKey: 'p', rowKey: 'r', at: new Date(0), text: 'grün "1"\r\n--changeset_1', none: undefined };
    const [request] = requestsIn(encodeBatch(URL, [{ kind: 'insert', row }], '1'));
    expect(request?.row).toEqual({
      PartitionKey: 'p',
      RowKey: 'r',
      at: '1970-01-01T00:00:00.000Z',
      'at@odata.type': 'Edm.DateTime',
      text: row.text,
    });
  });

  it('escapes keys in addresses', () => {
    const [request] = requestsIn(
      encodeBatch(URL, [{ kind: 'delete', partitionKey: "host|it's/a b", rowKey: '1' }], '1'),
    );
    expect(request?.start).toBe(`DELETE ${URL}(PartitionKey='host%7Cit''s%2Fa%20b',RowKey='1') HTTP/1.1`);
  });

  it('gives the new version of each row in order', () => {
    const text = answer(
      'HTTP/1.1 204 No Content\r\nETag: W/"1"\r\n',
      'HTTP/1.1 204 No Content\r\n',
      'HTTP/1.1 201 Created\r\netag: W/"3"\r\n',
    );
    expect(readBatch(202, text)).toEqual(['W/"1"', '', 'W/"3"']);
  });

  it('fails with the status and the words of the step that failed', () => {
    const error = '{"odata.error":{"code":"UpdateConditionNotSatisfied","message":{"value":"0:it has changed"}}}';
    const text = answer(`HTTP/1.1 412 Precondition Failed\r\nContent-Type: application/json\r\n\r\n${error}`);
    expect(() => readBatch(202, text)).toThrow(
      expect.objectContaining({ statusCode: 412, code: 'UpdateConditionNotSatisfied', message: '0:it has changed' }),
    );
  });

  it.each([
    ['a refusal without a body', 503, ''],
    ['a refusal that is no JSON', 500, '<html>{</html>'],
  ])('fails with the status of %s', (_name, status, text) => {
    expect(() => readBatch(status, text)).toThrow(expect.objectContaining({ statusCode: status }));
  });

  it('fails when a step of the answer has no status', () => {
    expect(() => readBatch(202, answer('nothing of the kind'))).toThrow(/cannot be read/);
  });
});

import { HttpRequest } from '@azure/functions';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { AUTH_MODES, type AuthMode, PRINCIPAL_HEADER, ROLES } from '../../shared/http/caller.ts';
import { type Answer, problemSchema } from '../../shared/http/problem.ts';
import { answer, type Input, none, RIGHTS, type Right, route } from '../../shared/http/route.ts';
import type { Office } from '../../shared/office.ts';

const WS = 'http://schemas.microsoft.com/ws/2008/06/identity/claims/role';
type Claim = [type: string, value: string];

const principal = (claims: readonly Claim[], more: Record<string, unknown> = {}) =>
  encoded({ auth_typ: 'aad', claims: claims.map(([typ, val]) => ({ typ, val })), ...more });
const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');

/** Calls a route that tells who it thinks calls. */
async function call(right: Right, headers: Record<string, string>, auth: AuthMode = 'app-service'): Promise<Answer> {
  // A route sees of the office what its handler asks for; this one asks for nothing.
  const office = { auth, log: () => {} } as unknown as Office;
  const echo = route({
    name: 'echo',
    method: 'POST',
    path: 'echo',
    right,
    summary: '',
    needsOperator: true,
    params: none,
    query: z.looseObject({}),
    handle: async (_office, { operator }: Input<unknown, unknown, unknown>) => ({ status: 200, body: { operator } }),
  });
  const request = new HttpRequest({ method: 'POST', url: 'http://localhost/api/echo', headers });
  return answer(echo, office, request, 'request-1');
}

const refusal = async (answered: Promise<Answer>) => {
  const { body, headers } = await answered;
  return { headers, ...problemSchema.parse(body) };
};
const withClaims = (right: Right, ...claims: Claim[]) => call(right, { [PRINCIPAL_HEADER]: principal(claims) });

const GUARDED = RIGHTS.filter((right): right is Exclude<Right, 'probe'> => right !== 'probe');

describe('behind App Service authentication', () => {
  it.each(GUARDED)('the role for "%s" lets its calls in, and names the caller', async (right) => {
    const { status, body } = await withClaims(
      right,
      ['roles', ROLES[right]],
      ['preferred_username', 'ada@example.org'],
    );
    expect([status, body]).toEqual([200, { operator: 'ada@example.org' }]);
  });

  it.each(GUARDED)('all other roles do not let in calls with the right "%s"', async (right) => {
    const others = GUARDED.filter((one) => one !== right).map((one): Claim => ['roles', ROLES[one]]);
    const refused = await refusal(withClaims(right, ...others, ['preferred_username', 'ada@example.org']));
    expect(refused).toMatchObject({ status: 403, code: 'DLO_ROLE_MISSING' });
    expect(refused.detail).toBe(`ada@example.org does not have the role ${ROLES[right]}`);
  });

  it.each<[string, Record<string, string>]>([
    ['no caller', {}],
    ['an empty one', { [PRINCIPAL_HEADER]: '' }],
    ['no base64', { [PRINCIPAL_HEADER]: '%%%' }],
    ['no JSON', { [PRINCIPAL_HEADER]: Buffer.from('claims').toString('base64') }],
    ['null', { [PRINCIPAL_HEADER]: encoded(null) }],
    ['no claims', { [PRINCIPAL_HEADER]: encoded({ auth_typ: 'aad' }) }],
    ['claims that are none', { [PRINCIPAL_HEADER]: encoded({ claims: [{ typ: 'roles' }] }) }],
    ['claims of another form', { [PRINCIPAL_HEADER]: encoded({ claims: { roles: Object.values(ROLES) } }) }],
    ['a role without a name', { [PRINCIPAL_HEADER]: principal([['roles', ROLES.read]]) }],
    [
      'a name that forges lines',
      {
        [PRINCIPAL_HEADER]: principal([
          ['sub', 'a\nb'],
          ['roles', ROLES.read],
        ]),
      },
    ],
    [
      'a header without end',
      {
        [PRINCIPAL_HEADER]: principal([
          ['sub', 'x'],
          ['roles', ROLES.read],
          ['x', 'y'.repeat(65_536)],
        ]),
      },
    ],
    ['a name in the header of callers with keys', { 'x-operator': 'ada' }],
  ])('%s is answered 401, and how to sign in', async (_what, headers) => {
    const refused = await refusal(call('read', headers));
    expect(refused).toMatchObject({ status: 401, code: 'DLO_NOT_SIGNED_IN' });
    expect(refused.headers).toMatchObject({ 'www-authenticate': 'Bearer' });
  });

  it.each<[string, Claim[], Record<string, unknown>]>([
    ['as tokens of version 1 have it', [[WS, ROLES.read]], {}],
    [
      'among others',
      [
        ['roles', 'Another.Role'],
        ['roles', ROLES.read],
      ],
      {},
    ],
    [
      'of the type that the header names',
      [['https://example.org/role', ROLES.read]],
      { role_typ: 'https://example.org/role' },
    ],
  ])('a role is found %s', async (_what, claims, more) => {
    const header = principal([...claims, ['preferred_username', 'ada']], more);
    expect((await call('read', { [PRINCIPAL_HEADER]: header })).status).toBe(200);
  });

  it.each<[string, Claim]>([
    ['a role in another case', ['roles', ROLES.read.toLowerCase()]],
    ['a role in a claim of another type', ['groups', ROLES.read]],
    ['a role with something behind it', ['roles', `${ROLES.read}Body`]],
  ])('%s is none', async (_what, claim) => {
    expect((await refusal(withClaims('read', claim, ['sub', 'ada']))).code).toBe('DLO_ROLE_MISSING');
  });

  it.each<[string, Claim[], string]>([
    [
      'a person by the user name',
      [
        ['oid', '1'],
        ['preferred_username', 'ada@example.org'],
      ],
      'ada@example.org',
    ],
    [
      'an app by its id',
      [
        ['oid', '1'],
        ['azp', 'c7a1'],
      ],
      'c7a1',
    ],
    [
      'anything else by its object',
      [
        ['sub', '2'],
        ['oid', '1'],
      ],
      '1',
    ],
    [
      'the next name when one is not printable',
      [
        ['preferred_username', 'a\u0085b'],
        ['oid', '1'],
      ],
      '1',
    ],
    [
      'nobody by a name of 101 characters',
      [
        ['preferred_username', 'a'.repeat(101)],
        ['oid', '1'],
      ],
      '1',
    ],
  ])('the audit names %s', async (_what, names, operator) => {
    expect((await withClaims('read', ['roles', ROLES.read], ...names)).body).toEqual({ operator });
  });

  test('a caller cannot give another name', async () => {
    const header = principal([
      ['roles', ROLES.read],
      ['preferred_username', 'ada'],
    ]);
    const { body } = await call('read', { [PRINCIPAL_HEADER]: header, 'x-operator': 'grace' });
    expect(body).toEqual({ operator: 'ada' });
  });

  test('a probe is asked for nothing', async () => {
    expect((await call('probe', { 'x-operator': 'ada' })).status).toBe(200);
  });
});

test('with keys alone, the header that anybody could write is not believed', async () => {
  const header = principal([
    ['roles', ROLES.discard],
    ['preferred_username', 'ada'],
  ]);
  expect((await refusal(call('discard', { [PRINCIPAL_HEADER]: header }, 'keys'))).code).toBe('DLO_OPERATOR_MISSING');
  const { body } = await call('discard', { [PRINCIPAL_HEADER]: header, 'x-operator': 'grace' }, 'keys');
  expect(body).toEqual({ operator: 'grace' });
});

test('there are two ways in', () => {
  expect(AUTH_MODES).toEqual(['keys', 'app-service']);
});

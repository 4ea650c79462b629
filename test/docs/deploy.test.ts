import { expect, test } from 'vitest';
import { ROUTES } from '../../functions/register.ts';
import { rowsUnder } from './pages.ts';
import { isKnownTool } from './tools.ts';

test('the page names the functions of each right, all of them', () => {
  const named = rowsUnder('docs/deploy.md', '4. Keys').map(([right = '', functions = '']): [string, string[]] => [
    right.replaceAll('`', ''),
    functions.replaceAll('`', '').split(' ').sort(),
  ]);
  const rights = ['read', 'body', 'replay', 'discard'];
  const functionsOf = (right: string) => ROUTES.filter((route) => route.right === right).map(({ name }) => name);
  expect(Object.fromEntries(named)).toEqual(
    Object.fromEntries(rights.map((right) => [right, functionsOf(right).sort()])),
  );
});

test('a command with a slip of the pen in its name or a flag is noticed', () => {
  expect(isKnownTool('az group create --name rg --location westeurope')).toBe(true);
  expect(isKnownTool('APP=$(az deployment group show --name office --query x)')).toBe(true);
  expect(isKnownTool('az group make --name rg')).toBe(false);
  expect(isKnownTool('az group create --nam rg')).toBe(false);
});

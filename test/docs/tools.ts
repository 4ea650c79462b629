/**
 * Tools that cannot be run here: which of their commands the pages may name, and with which flags. From their documentation; a
 * slip of the pen is noticed, a change of the tool is not.
 */

const DEPLOYMENT = ['--name', '--resource-group', '--template-file', '--parameters', '--query', '--output'];

const KNOWN: Readonly<Record<string, readonly string[]>> = {
  'az login': [],
  'az group create': ['--name', '--location'],
  'az deployment group create': DEPLOYMENT,
  'az deployment group what-if': DEPLOYMENT,
  'az deployment group show': ['--name', '--resource-group', '--query', '--output'],
  'az functionapp deployment source config-zip': ['--resource-group', '--name', '--src', '--output'],
  'az functionapp function keys set': [
    '--resource-group',
    '--name',
    '--function-name',
    '--key-name',
    '--key-value',
    '--output',
  ],
  'azd auth login': [],
  'azd up': [],
  'gh workflow run': ['--field'],
  'func start': [],
  'npx azurite': ['--inMemoryPersistence'],
  'openssl rand': ['-base64'],
  zip: ['-r', '-q', '-X'],
  cp: [],
};

/** Whether a command line, perhaps in a subshell or assigned to a variable, is one of those, with nothing but its flags. */
export function isKnownTool(command: string): boolean {
  const plain = command.replace(/^\w+=\$\((.*)\)$/, '$1').replace(/^\((?:cd \S+ && )?(.*)\)$/, '$1');
  const name = Object.keys(KNOWN).find((one) => plain === one || plain.startsWith(`${one} `));
  if (name === undefined) return false;
  const flags = plain.slice(name.length).match(/(?<=\s)--?[a-zA-Z][\w-]*/g) ?? [];
  return flags.every((flag) => KNOWN[name]?.includes(flag));
}

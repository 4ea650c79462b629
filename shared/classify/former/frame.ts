/** A stack frame as version 1 compared it; see fingerprint.ts beside it. */

const MAX_FRAME = 500;

/**
 * Names what a frame called, for the formats of .NET, Java, Node, Python and PHP: `Shop.OrderHandler.Handle`. Line numbers and
 * parameters change with every release of the program, so they are left out. Empty when nothing is left. Never throws.
 */
export function frameOf(text: string): string {
  const line = text
    .slice(0, MAX_FRAME)
    .replace(/[\p{C}\s]+/gu, ' ')
    .trim();
  const python = /^File "([^"]{1,300})", line \d{1,9}(?:, in (.{1,200}))?$/.exec(line);
  if (python) return `${fileOf(python[1] ?? '')} ${python[2] ?? ''}`.trim();
  const php = /^#\d{1,6} [^(]{0,300}\(\d{1,9}\): (.{1,300})$/.exec(line);
  const call = (php?.[1] ?? line).replace(/^at (?:async )?(?:new )?/, '');
  const name = call.replace(/ in [^ ]{1,300}:(?:line )?\d{1,9}$/, '').replace(/ ?\(.{0,400}$/, '');
  const readable = withoutCompiler(name).replace(/:\d{1,9}(?::\d{1,9})?$/, '');
  return /[/\\]/.test(readable) && !/^[\w\\$]+(?:->|::)/.test(readable) ? fileOf(readable) : readable.slice(0, 200);
}

/** State machines, lambdas, local functions, generics and proxies carry numbers that change with the code around them. */
function withoutCompiler(name: string): string {
  return name
    .replace(/<>c(?:__DisplayClass[\w]{1,20})?\.?/g, '')
    .replace(/<([\w.]{1,100})>[bdg]__[\w|]{1,60}(?:\.MoveNext)?/g, '$1')
    .replace(/\$\$(?:Lambda|EnhancerBy\w{1,20}|FastClassBy\w{1,20})[\w$/.]{0,60}/g, '')
    .replace(/lambda\$([\w]{1,100})\$\d{1,6}/g, '$1')
    .replace(/`\d{1,3}|\[[^\]]{0,200}\]/g, '')
    .replace(/\.{2,}/g, '.')
    .replace(/^[.\s]+|[.\s]+$/g, '');
}

function fileOf(path: string): string {
  return path.split(/[/\\]/).at(-1) ?? '';
}

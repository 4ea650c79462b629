/**
 * XML as administration needs it: elements, attributes and text, without declarations of types or entities. A document
 * that is large, deep, or brings entities of its own is refused before any of it is believed.
 */

/** Says why a document is refused. */
export class XmlError extends Error {
  override readonly name = 'XmlError';
}

/** An element. Names are without their prefixes: the documents here mix no vocabularies. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** The text directly inside, without that of the children. */
  readonly text: string;
}

interface OpenElement extends XmlElement {
  readonly tag: string;
  readonly children: XmlElement[];
  text: string;
}

const MAX_CHARACTERS = 262_144;
const MAX_DEPTH = 32;
const MAX_ELEMENTS = 5_000;

const NAME = /[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?/y;
const ATTRIBUTE = /\s+([A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;
const TAG_END = /\s*(\/?)>/y;
const CLOSING = /<\/([\w.:-]+)\s*>/y;
const PREDEFINED: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const ESCAPED: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };

/** Reads a document and answers its root. Throws {@link XmlError}. */
export function parseXml(document: string): XmlElement {
  if (document.length > MAX_CHARACTERS) throw new XmlError(`a document has at most ${MAX_CHARACTERS} characters`);
  const root: OpenElement = { name: '', tag: '', attributes: new Map(), children: [], text: '' };
  const open = [root];
  let elements = 0;
  for (let at = 0; at < document.length; ) {
    const inside = open.at(-1) as OpenElement;
    const next = document.indexOf('<', at);
    if (next !== at) {
      const end = next < 0 ? document.length : next;
      inside.text += decoded(document.slice(at, end));
      at = end;
    } else if (document.startsWith('<!--', at)) {
      at = after(document, '-->', at + 4);
    } else if (document.startsWith('<![CDATA[', at)) {
      const end = after(document, ']]>', at + 9);
      inside.text += document.slice(at + 9, end - 3);
      at = end;
    } else if (document.startsWith('<?', at)) {
      at = after(document, '?>', at + 2);
    } else if (document.startsWith('<!', at)) {
      throw new XmlError('declarations (<!DOCTYPE, <!ENTITY) are not allowed');
    } else if (document.startsWith('</', at)) {
      const tag = matchAt(CLOSING, document, at)?.[1];
      if (tag === undefined || open.length === 1 || tag !== inside.tag) throw broken(at);
      open.pop();
      at = CLOSING.lastIndex;
    } else {
      if (++elements > MAX_ELEMENTS) throw new XmlError(`a document has at most ${MAX_ELEMENTS} elements`);
      const { element, end, empty } = startTag(document, at);
      inside.children.push(element);
      if (!empty) open.push(element);
      if (open.length > MAX_DEPTH) throw new XmlError(`elements are nested more than ${MAX_DEPTH} deep`);
      at = end;
    }
  }
  const [first, second] = root.children;
  if (open.length > 1 || !first || second || root.text.trim() !== '') throw broken(document.length);
  return first;
}

function startTag(document: string, at: number): { element: OpenElement; end: number; empty: boolean } {
  const tag = matchAt(NAME, document, at + 1)?.[0];
  if (tag === undefined) throw broken(at);
  let end = at + 1 + tag.length;
  const attributes = new Map<string, string>();
  for (let match = matchAt(ATTRIBUTE, document, end); match; match = matchAt(ATTRIBUTE, document, end)) {
    const name = match[1] as string;
    // Declarations of name spaces keep their prefix, so that they are not taken for attributes.
    attributes.set(name.startsWith('xmlns') ? name : local(name), decoded(match[2] ?? match[3] ?? ''));
    end = ATTRIBUTE.lastIndex;
  }
  const close = matchAt(TAG_END, document, end);
  if (!close) throw broken(end);
  const element = { name: local(tag), tag, attributes, children: [], text: '' };
  return { element, end: TAG_END.lastIndex, empty: close[1] === '/' };
}

function local(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function decoded(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(/&([^;&]{0,16});?/g, (whole, name: string) => {
    const number = /^#(?:x([0-9a-fA-F]{1,6})|(\d{1,7}))$/.exec(name);
    const code = number ? (number[1] ? Number.parseInt(number[1], 16) : Number(number[2])) : undefined;
    if (whole.endsWith(';') && code !== undefined && isCharacter(code)) return String.fromCodePoint(code);
    if (whole.endsWith(';') && Object.hasOwn(PREDEFINED, name)) return PREDEFINED[name] as string;
    throw new XmlError(`'${whole}' is no entity that is allowed here`);
  });
}

function isCharacter(code: number): boolean {
  return (
    code === 9 || code === 10 || code === 13 || (code >= 32 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000))
  );
}

function after(document: string, end: string, from: number): number {
  const at = document.indexOf(end, from);
  if (at < 0) throw broken(from);
  return at + end.length;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function broken(at: number): XmlError {
  return new XmlError(`the document is not well-formed at character ${at + 1}`);
}

/** The first child of a name. */
export function childOf(element: XmlElement, name: string): XmlElement | undefined {
  return element.children.find((child) => child.name === name);
}

/** Text as it stands inside an element or attribute. Characters that XML does not know are left out. */
export function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '')
    .replace(/[&<>"']/g, (character) => ESCAPED[character] as string);
}

/** An element as text. `content` is XML already, or nothing. */
export function element(name: string, content: string | undefined, attributes: Record<string, string> = {}): string {
  const inside = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(value)}"`);
  return content === undefined ? `<${name}${inside.join('')}/>` : `<${name}${inside.join('')}>${content}</${name}>`;
}

/** Answers of the ATOM interface: entries, feeds and errors (Service Bus documentation, "Service Bus REST API"). */
import type { Description } from './description.ts';
import { element, escapeXml } from './xml.ts';

const ATOM = 'http://www.w3.org/2005/Atom';
export const CONNECT = 'http://schemas.microsoft.com/netservices/2010/10/servicebus/connect';
export const INSTANCE = 'http://www.w3.org/2001/XMLSchema-instance';
const COUNTS = 'http://schemas.microsoft.com/netservices/2011/06/servicebus';

const ROOTS = {
  queue: 'QueueDescription',
  topic: 'TopicDescription',
  subscription: 'SubscriptionDescription',
} as const;

/** Something that has an entry: its content is XML. */
export interface Item {
  /** Where it stands, below the namespace; clients read names out of it. */
  readonly path: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly content: string;
}

/** A description as an item. `host` is what the client calls this server. */
export function itemOf({ kind, path, createdAt, updatedAt, fields }: Description, host: string): Item {
  const content = fields.map(([name, value]) => {
    if (typeof value === 'object') return countsElement(value);
    const isTarget = name === 'ForwardTo' || name === 'ForwardDeadLetteredMessagesTo';
    return element(name, escapeXml(isTarget ? `sb://${host}/${value}` : String(value)));
  });
  return { path, createdAt, updatedAt, content: rootElement(ROOTS[kind], content.join('')) };
}

/** The element inside an entry's content. */
export function rootElement(name: string, content: string): string {
  return element(name, content, { xmlns: CONNECT, 'xmlns:i': INSTANCE });
}

/** The JavaScript client wants exactly one attribute here, which declares the prefix of the children. */
function countsElement(counts: object): string {
  const children = Object.entries(counts).map(([name, value]) =>
    element(`d2p1:${name.charAt(0).toUpperCase()}${name.slice(1)}`, String(value)),
  );
  return element('CountDetails', children.join(''), { 'xmlns:d2p1': COUNTS });
}

/** One entry as a document. */
export function entryDocument(item: Item, host: string): string {
  return entry(item, host);
}

function entry({ path, createdAt, updatedAt, content }: Item, host: string): string {
  const url = `https://${host}/${path.split('/').map(encodeURIComponent).join('/').replaceAll('%24', '$')}`;
  const name = path.slice(path.lastIndexOf('/') + 1);
  // A queue's or topic's name may hold slashes; below a topic the last part is the name.
  const title = /\/(?:Subscriptions|Rules)\/[^/]+$/.test(path) ? name : path;
  return element(
    'entry',
    [
      element('id', escapeXml(url)),
      element('title', escapeXml(title), { type: 'text' }),
      element('published', new Date(createdAt).toISOString()),
      element('updated', new Date(updatedAt).toISOString()),
      element('link', undefined, { rel: 'self', href: url }),
      element('content', content, { type: 'application/xml' }),
    ].join(''),
    { xmlns: ATOM },
  );
}

/** A page of a list. `next` is the query of the page behind it. */
export function feedDocument(
  items: readonly Item[],
  options: { host: string; path: string; now: number; next: string | undefined },
): string {
  const url = `https://${options.host}/${options.path}`;
  const links = [element('link', undefined, { rel: 'self', href: url })];
  if (options.next !== undefined)
    links.push(element('link', undefined, { rel: 'next', href: `${url}?${options.next}` }));
  return element(
    'feed',
    [
      element('title', escapeXml(options.path), { type: 'text' }),
      element('id', escapeXml(url)),
      element('updated', new Date(options.now).toISOString()),
      ...links,
      ...items.map((item) => entry(item, options.host)),
    ].join(''),
    { xmlns: ATOM },
  );
}

/** An error as a document. */
export function errorDocument(status: number, detail: string): string {
  return element('Error', element('Code', String(status)) + element('Detail', escapeXml(detail)));
}

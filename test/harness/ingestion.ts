/** The endpoint that signals are sent to, in this process: what Application Insights would take, and ways in which it fails. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { selfSigned } from './certificate.ts';

/** `ok` takes everything, `error` answers 500, `garbage` answers 200 with what is no answer, `never` does not answer. */
export type Mood = 'ok' | 'error' | 'garbage' | 'never';

const envelopeSchema = z.object({
  name: z.string(),
  time: z.string(),
  sampleRate: z.number().optional(),
  tags: z.record(z.string(), z.string().nullable()).optional(),
  data: z.object({
    baseType: z.string(),
    baseData: z.looseObject({
      name: z.string().optional(),
      id: z.string().optional(),
      success: z.boolean().optional(),
      metrics: z.array(z.object({ name: z.string(), value: z.number() })).optional(),
      properties: z.record(z.string(), z.unknown()).optional(),
    }),
  }),
});
export type Envelope = z.infer<typeof envelopeSchema>;

/** One value of a metric, as it was sent. */
export interface Point {
  name: string;
  value: number;
  properties: Record<string, unknown>;
}

export class Ingestion {
  mood: Mood = 'ok';
  /** Everything that was sent, as text. */
  readonly bodies: string[] = [];
  readonly envelopes: Envelope[] = [];
  /** Values of the header `authorization`. */
  readonly authorizations: string[] = [];
  /** Requests that were begun, whatever was answered. */
  requests = 0;
  /** App settings that send signals here. */
  readonly settings: Record<string, string>;
  readonly close: () => Promise<void>;

  constructor(url: string, folder: string, close: () => Promise<void>) {
    const connectionString = `InstrumentationKey=${randomUUID()};IngestionEndpoint=${url}/`;
    this.settings = {
      APPLICATIONINSIGHTS_CONNECTION_STRING: connectionString,
      // The library speaks to nobody without TLS.
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
      OTEL_METRIC_EXPORT_INTERVAL: '500',
      // Where it keeps what it could not send.
      TMPDIR: folder,
    };
    this.close = close;
  }

  /** Custom events of that name: what they say. */
  events(name: string): Record<string, unknown>[] {
    return this.#ofType('EventData')
      .filter(({ data }) => data.baseData.name === name)
      .map(({ data }) => data.baseData.properties ?? {});
  }

  /** Values of a metric, oldest first. */
  points(name?: string): Point[] {
    return this.#ofType('MetricData').flatMap(({ data }) =>
      (data.baseData.metrics ?? [])
        .filter((metric) => name === undefined || metric.name === name)
        .map((metric) => ({ ...metric, properties: data.baseData.properties ?? {} })),
    );
  }

  /** Sum of a counter over everything with these properties. */
  sum(name: string, properties: Record<string, unknown> = {}): number {
    const wanted = Object.entries(properties);
    return this.points(name)
      .filter((point) => wanted.every(([key, value]) => point.properties[key] === value))
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** Spans, as Application Insights has them. */
  spans(name?: string): Envelope[] {
    return this.envelopes.filter(
      ({ data }) =>
        ['RemoteDependencyData', 'RequestData'].includes(data.baseType) &&
        (name === undefined || data.baseData.name === name),
    );
  }

  #ofType(type: string): Envelope[] {
    return this.envelopes.filter(({ data }) => data.baseType === type);
  }
}

/** Links of a span. */
export function linksOf({ data }: Envelope): { operation_Id: string; id: string }[] {
  const text = z.string().parse(data.baseData.properties?.['_MS.links'] ?? '[]');
  return z.array(z.object({ operation_Id: z.string(), id: z.string() })).parse(JSON.parse(text));
}

/** Opens the endpoint on a free port. */
export async function openIngestion(): Promise<Ingestion> {
  const server = createServer(selfSigned(), (request, response) => void take(ingestion, request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const folder = await mkdtemp(join(tmpdir(), 'ingestion-'));
  const ingestion: Ingestion = new Ingestion(url, folder, async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
    await rm(folder, { recursive: true, force: true });
  });
  return ingestion;
}

async function take(ingestion: Ingestion, request: IncomingMessage, response: ServerResponse): Promise<void> {
  ingestion.requests++;
  if (request.headers.authorization !== undefined) ingestion.authorizations.push(request.headers.authorization);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const raw = Buffer.concat(chunks);
  if (ingestion.mood === 'never') return;
  if (ingestion.mood === 'error') return void response.writeHead(500).end();
  if (ingestion.mood === 'garbage') return void response.writeHead(200).end('<html>busy</html>');
  if (!request.url?.endsWith('/v2.1/track')) return void response.writeHead(404).end();
  const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw).toString();
  ingestion.bodies.push(text);
  const envelopes = z.array(envelopeSchema).parse(JSON.parse(text));
  ingestion.envelopes.push(...envelopes);
  const answer = { itemsReceived: envelopes.length, itemsAccepted: envelopes.length, errors: [] };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
}

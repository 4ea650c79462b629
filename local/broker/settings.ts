/** How a queue, topic or subscription behaves. */

/** Durations in milliseconds. What is left out is off. */
export interface EntitySettings {
  readonly lockDuration: number;
  readonly maxDeliveryCount: number;
  /** `Infinity` when messages without a time to live of their own never expire. */
  readonly defaultTimeToLive: number;
  readonly deadLetteringOnMessageExpiration: boolean;
  readonly requiresSession?: boolean;
  /** For how long a message id is remembered; with it, duplicates are detected. */
  readonly duplicateWindow?: number;
  /** Into how many partitions messages are spread. */
  readonly partitions?: number;
  /** What one connection deferred is out of reach for every other. */
  readonly bindsDeferred?: boolean;
}

/**
 * The settings of an entity's dead-letter queue, which knows neither sessions nor duplicates. `bindsDeferred`: whether
 * the deferred dead letters of an entity with sessions are out of reach for other connections, as was seen on Azure.
 */
export function deadLetterSettings(settings: EntitySettings, bindsDeferred: boolean): EntitySettings {
  const { requiresSession = false, duplicateWindow: _, ...rest } = settings;
  return { ...rest, bindsDeferred: requiresSession && bindsDeferred };
}

/** A topic's own store: it knows no locks, and the time to live is observed by the subscriptions. */
export function topicSettings(topic: Pick<EntitySettings, 'duplicateWindow' | 'partitions'>): EntitySettings {
  return {
    ...topic,
    lockDuration: 0,
    maxDeliveryCount: Number.POSITIVE_INFINITY,
    defaultTimeToLive: Number.POSITIVE_INFINITY,
    deadLetteringOnMessageExpiration: false,
  };
}

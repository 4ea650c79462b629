/** Links: reading what a peer asks for, confirming or refusing it, and answering a drain. */
import { frames, type RheaLink } from './rhea.ts';

/** Answers a drain: gives all credit back and says so, also when there was none left. */
export function answerDrain(link: RheaLink): void {
  const { incoming, outgoing } = link.session;
  link.delivery_count += link.credit;
  link.credit = 0;
  link._draining = false;
  link.session.output(
    frames.flow({
      next_incoming_id: incoming.next_transfer_id >>> 0,
      incoming_window: incoming.window,
      next_outgoing_id: outgoing.next_transfer_id >>> 0,
      outgoing_window: outgoing.window,
      handle: link.local.handle,
      delivery_count: link.delivery_count,
      link_credit: 0,
      drain: true,
    }),
  );
}

/** Address of the terminus the peer named, `undefined` when it named none. */
export function remoteAddress(link: RheaLink, end: 'source' | 'target'): string | undefined {
  const terminus = link.remote.attach[end];
  return terminus?.address ?? undefined;
}

/** Names of the filters a peer put on its source. */
export function sourceFilters(link: RheaLink): string[] {
  return Object.keys(link.remote.attach.source?.filter ?? {});
}

/** Answers an attach with the peer's own terms. `maxMessageBytes` only on a link the broker receives on. */
export function confirmAttach(link: RheaLink, maxMessageBytes?: number): void {
  const { local, remote } = link;
  for (const end of ['source', 'target'] as const) {
    const terminus = remote.attach[end];
    if (terminus) local.attach[end] = terminus.described();
  }
  local.attach.snd_settle_mode = remote.attach.snd_settle_mode;
  local.attach.rcv_settle_mode = remote.attach.rcv_settle_mode;
  if (maxMessageBytes !== undefined) local.attach.max_message_size = maxMessageBytes;
}

/** Refuses an attach: the answer names no terminus, and a detach with the error follows (AMQP 1.0, part 2, 2.6.3). */
export function refuseAttach(link: RheaLink, error: { condition: string; description: string }): void {
  link.local.attach.source = null;
  link.local.attach.target = null;
  link.close({ condition: error.condition, description: error.description });
}

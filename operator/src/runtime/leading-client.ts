import type { Client } from '@tutti/kube'

/** A write that was not sent, because another process may lead by now. */
export class NotLeadingError extends Error {
  override readonly name = 'NotLeadingError'

  constructor() {
    super('not sent: the lease may belong to another process by now')
  }
}

/**
 * The same client, which refuses to write while the lease is not certainly held: a process that was frozen and goes on ends by
 * its next look at the lease, and what it was about to write until then must not reach the server.
 */
export function leadingClient(client: Client, leader: { readonly holdsLease: boolean }): Client {
  const send = async <R>(write: () => Promise<R>): Promise<R> => {
    if (!leader.holdsLease) throw new NotLeadingError()
    return await write()
  }
  return {
    get: (resource, key, o) => client.get(resource, key, o),
    list: (resource, o) => client.list(resource, o),
    watch: (resource, o) => client.watch(resource, o),
    serves: (resource, o) => client.serves(resource, o),
    tokenIssuer: (o) => client.tokenIssuer(o),
    create: (resource, object, o) => send(() => client.create(resource, object, o)),
    apply: (resource, object, o) => send(() => client.apply(resource, object, o)),
    applyStatus: (resource, object, o) => send(() => client.applyStatus(resource, object, o)),
    replace: (resource, object, o) => send(() => client.replace(resource, object, o)),
    mergePatch: (resource, key, o) => send(() => client.mergePatch(resource, key, o)),
    delete: (resource, key, o) => send(() => client.delete(resource, key, o)),
  }
}

import type { Client } from '@tutti/kube'

/** The error for a write that was not sent, because another process may lead by now. */
export class NotLeadingError extends Error {
  override readonly name = 'NotLeadingError'

  constructor() {
    super('not sent: the lease may belong to another process by now')
  }
}

/**
 * Wraps a client so that its writes throw NotLeadingError while `holdsLease` is false; reads pass. A process that was frozen may
 * have lost the lease, and must not write before it notices that.
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

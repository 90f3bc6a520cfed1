import { type Client, isNotFound, keyOf, SECRET } from '@tutti/kube'
import { NATS_SECRETS } from '../../nats/nats-tenancy.ts'
import { isManaged } from '../../runtime/children.ts'

/** What gives namespaces their credential for the broker; `NatsTenancy` does. */
export interface Tenancy {
  ensureTenant(
    namespace: string,
    o: { readonly signal: AbortSignal },
  ): Promise<{ readonly renewAtMs: number }>
}

/** Takes the credential of a namespace away, if it is the operator's. @throws KubeError */
export async function removeCredential(
  client: Client,
  namespace: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const key = { namespace, name: NATS_SECRETS.credentials }
  try {
    const secret = await client.get(SECRET, key, { signal })
    if (!isManaged(secret)) return
    const { uid, resourceVersion } = secret.metadata
    await client.delete(SECRET, keyOf(secret), { preconditions: { uid, resourceVersion }, signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}

import type { Accelerator } from '@tutti/api'
import type { CancelSignal } from '@tutti/errors'
import {
  type Client,
  isForbidden,
  RESOURCE_CLAIM,
  RESOURCE_CLAIM_TEMPLATE,
  unlessNotFound,
} from '@tutti/kube'
import type { Refusal } from './check-model.ts'

type ClaimReason = 'ClaimsNotServed' | 'ClaimNotFound'

/** The reasons of refusals that no watch ends. */
export const CLAIM_REASONS: ReadonlySet<string> = new Set<ClaimReason>([
  'ClaimsNotServed',
  'ClaimNotFound',
])

/** The claims of a Model, and the namespace in which they are looked for. */
export interface ClaimsOfModel {
  readonly namespace: string
  readonly claims: Accelerator['claims']
  readonly signal: CancelSignal
}

/**
 * Finds why no pod could have the claims of a Model. A server that does not know claims drops them from pods, and says nothing. Nor do
 * pods whose claim is not there: the scheduler leaves them as they are.
 *
 * @returns undefined if the claims can be used, or there are none. No watch reports when a refusal is over.
 * @throws KubeError
 */
export async function findClaimRefusal(
  client: Pick<Client, 'get' | 'serves'>,
  { namespace, claims = [], signal }: ClaimsOfModel,
): Promise<Refusal | undefined> {
  if (claims.length === 0) return undefined
  if (!(await client.serves(RESOURCE_CLAIM, { signal }))) {
    return refuse(
      'ClaimsNotServed',
      'accelerator.claims: the cluster does not serve resource.k8s.io/v1, want Kubernetes 1.34 or newer; or resourceName and count in place of claims',
    )
  }
  for (const { name, resourceClaimName, resourceClaimTemplateName } of claims) {
    const resource = resourceClaimName === undefined ? RESOURCE_CLAIM_TEMPLATE : RESOURCE_CLAIM
    const wanted = resourceClaimName ?? resourceClaimTemplateName ?? ''
    const asked = client.get(resource, { namespace, name: wanted }, { signal })
    const isThere = await unlessNotFound(asked)
      .then((found) => found !== undefined)
      .catch((error: unknown) => {
        // An operator that may not read claims leaves them to Kubernetes.
        if (isForbidden(error)) return true
        throw error
      })
    if (isThere) continue
    const message = `accelerator.claims: '${name}' wants the ${resource.kind} "${wanted}", which is not in the namespace; pods stay as they are until it is`
    return refuse('ClaimNotFound', message)
  }
  return undefined
}

function refuse(reason: ClaimReason, message: string): Refusal {
  return { condition: 'Accepted', reason, message }
}

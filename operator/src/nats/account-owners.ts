import type { Secret, Stored } from '@tutti/kube'
import { isManaged } from '../runtime/children.ts'
import { ACCOUNT_ID_PATTERN, type AccountOwner } from './account-keys.ts'
import { NATS_SECRETS } from './tenancy-secrets.ts'

/** Label of that Secret: what the namespace's account is derived from, see AccountOwner. */
export const ACCOUNT_LABEL = 'tutti.dev/nats-account'

/** A namespace gets no other account sooner: its pods have the new credential only a minute or two later. */
const RENEW_MS = 60_000

/** The last account that a namespace was given. */
interface Given {
  /** Undefined once the Secret says otherwise: the account is not given back before a minute is over. */
  id: string | undefined
  readonly atMs: number
}

/**
 * Whose accounts there shall be. Who may write the Secret of a namespace can change its label as often as they like: the former
 * account goes at once, and another one comes a minute after that was given, at the earliest.
 */
export class AccountOwners {
  readonly #given = new Map<string, Given>()

  /**
   * @param secrets - all that are known.
   * @param nowMs - monotonic.
   * @returns owners: in the order of their namespaces; waitMs: when the first that has to wait gets its account.
   */
  take(
    secrets: Iterable<Stored<Secret>>,
    nowMs: number,
  ): { readonly owners: readonly AccountOwner[]; readonly waitMs: number } {
    const wanted = new Map(wantedOf(secrets).map(({ namespace, id }) => [namespace, id]))
    for (const [namespace, given] of this.#given) {
      if (wanted.get(namespace) === given.id) continue
      given.id = undefined
      if (nowMs - given.atMs >= RENEW_MS) this.#given.delete(namespace)
    }
    const owners: AccountOwner[] = []
    let waitMs = Number.POSITIVE_INFINITY
    for (const [namespace, id] of wanted) {
      const given = this.#given.get(namespace) ?? { id, atMs: nowMs }
      this.#given.set(namespace, given)
      if (given.id === id) owners.push({ namespace, id })
      else waitMs = Math.min(waitMs, given.atMs + RENEW_MS - nowMs)
    }
    return { owners, waitMs }
  }
}

/** @returns what a Secret's label says; undefined if that is no id. */
export function accountIdOf(
  labels: Readonly<Record<string, string>> | undefined,
): string | undefined {
  const id = labels?.[ACCOUNT_LABEL]
  return id !== undefined && ACCOUNT_ID_PATTERN.test(id) ? id : undefined
}

function wantedOf(secrets: Iterable<Stored<Secret>>): readonly AccountOwner[] {
  const wanted: AccountOwner[] = []
  for (const secret of secrets) {
    const { name, namespace = '', labels } = secret.metadata
    const id = accountIdOf(labels)
    if (name === NATS_SECRETS.credentials && id !== undefined && isManaged(secret)) {
      wanted.push({ namespace, id })
    }
  }
  return wanted.toSorted((one, other) => (one.namespace < other.namespace ? -1 : 1))
}

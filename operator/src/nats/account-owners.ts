import type { Secret, Stored } from '@tutti/kube'
import { isManaged } from '../runtime/children.ts'
import { ACCOUNT_ID_PATTERN, type AccountOwner } from './account-keys.ts'
import { NATS_SECRETS } from './tenancy-secrets.ts'

/** The label of a namespace's credential Secret that holds the account id; see AccountOwner. */
export const ACCOUNT_LABEL = 'tutti.dev/nats-account'

/** Least time before a namespace gets another account: its pods have the new credential only a minute or two later. */
const RENEW_MS = 60_000

/** The last account that a namespace was given. */
interface Given {
  /** Undefined once the Secret says otherwise: the account is not given back before a minute is over. */
  id: string | undefined
  readonly atMs: number
}

/**
 * Decides which accounts must exist. A tenant may change the label of its Secret at any time. The former account then goes at
 * once, and the namespace gets its next account a minute after the former was given, at the earliest.
 */
export class AccountOwners {
  readonly #given = new Map<string, Given>()

  /**
   * Computes the owners of accounts from the labels of Secrets.
   *
   * @param secrets - all known Secrets; other kinds of Secrets among them are ignored.
   * @param nowMs - monotonic time, in milliseconds.
   * @returns owners, sorted by namespace; waitMs, the time until a namespace that waits gets its account, infinite if none waits.
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

/** Reads the account id from a Secret's labels. @returns undefined if there is none, or it has another form. */
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

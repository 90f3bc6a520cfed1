import type { AccountKeys } from './account-keys.ts'
import { createNkey } from './nkey.ts'
import type { SigningKeys } from './tenancy-keys.ts'

/**
 * The steps by which the signing key is replaced, one after the other:
 *
 * - `add`: a next key becomes known to the servers.
 * - `use`: credentials are signed by it, all of them at once; the one before stays known.
 * - `remove`: the one before is known no more. Refused while credentials of it may be in use.
 * - `remove-now`: the same without that wait, for a key that has leaked.
 */
export const ROTATION_STEPS = ['add', 'use', 'remove', 'remove-now'] as const

export type RotationStep = (typeof ROTATION_STEPS)[number]

/** The plan of a step: what it makes of the keys; `refused` says why it is not the one that is due. */
export type RotationPlan =
  | { readonly kind: 'done' }
  | { readonly kind: 'change'; readonly step: RotationStep; readonly keys: AccountKeys }
  | { readonly kind: 'refused'; readonly message: string }

export interface RotationState {
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  /** Lifetime of a credential. */
  readonly lifetimeMs: number
  /** The servers have learned the next key, as far as is known. */
  readonly isNextKnown: boolean
}

/** Plans a step. One that has been taken is `done`, however often it is asked for. @param asked - its name, or anything. */
export function planRotation(keys: AccountKeys, asked: string, state: RotationState): RotationPlan {
  const step = ROTATION_STEPS.find((one) => one === asked)
  if (step === undefined) {
    const message = `got ${JSON.stringify(asked.slice(0, 64))}, want one of ${ROTATION_STEPS.join(', ')}`
    return { kind: 'refused', message }
  }
  const plan = PLANS[step](keys.signing, state)
  if (plan === 'done') return { kind: 'done' }
  if ('why' in plan) {
    const message = `got "${step}", but ${plan.why}: want ${plan.wanted}`
    return { kind: 'refused', message }
  }
  return { kind: 'change', step, keys: { ...keys, signing: plan } }
}

type SigningPlan = SigningKeys | 'done' | { readonly why: string; readonly wanted: string }

type Planner = (keys: SigningKeys, state: RotationState) => SigningPlan

const removeNow: Planner = ({ current, next, previous }) => {
  if (next !== undefined) return { why: 'the next key is not in use', wanted: '"use" first' }
  return previous === undefined ? 'done' : { current }
}

const PLANS: Readonly<Record<RotationStep, Planner>> = {
  add: ({ current, next, previous }) => {
    if (next !== undefined) return 'done'
    if (previous !== undefined) {
      return { why: 'the last rotation has not ended', wanted: '"remove" first' }
    }
    return { current, next: createNkey('account') }
  },
  use: ({ current, next, previous }, { nowMs, isNextKnown }) => {
    if (next === undefined) {
      return previous === undefined
        ? { why: 'there is no next key', wanted: '"add" first' }
        : 'done'
    }
    if (isNextKnown) return { current: next, previous: current, usedAtMs: nowMs }
    return { why: 'no server has learned the next key', wanted: 'servers that can be reached' }
  },
  remove: (keys, state) => {
    const { previous, usedAtMs } = keys
    if (previous !== undefined && usedAtMs === undefined) {
      const wanted = '"remove-now" once you know that all have ended'
      return { why: 'it is not known when credentials of the last key end', wanted }
    }
    const endMs = (usedAtMs ?? 0) + state.lifetimeMs
    if (previous !== undefined && state.nowMs < endMs) {
      const why = `credentials of the last key are good until ${new Date(endMs).toISOString()}`
      return { why, wanted: '"remove" after that, or "remove-now" to end them' }
    }
    return removeNow(keys, state)
  },
  'remove-now': removeNow,
}

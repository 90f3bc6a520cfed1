import type { AccountKeys } from './account-keys.ts'
import { createNkey } from './nkey.ts'
import type { SigningKeys } from './tenancy-keys.ts'

/**
 * The steps that replace the signing key, in order:
 *
 * - `add`: the servers learn the next key.
 * - `use`: all credentials are signed with the next key. The servers still accept the previous key.
 * - `remove`: the servers forget the previous key. The step is refused while its credentials may still be valid.
 * - `remove-now`: the servers forget the previous key at once, for a key that has leaked.
 */
export const ROTATION_STEPS = ['add', 'use', 'remove', 'remove-now'] as const

export type RotationStep = (typeof ROTATION_STEPS)[number]

/**
 * The plan of a step: `change` has the new keys, `done` means that the step was taken before, `refused` says why it is not due.
 */
export type RotationPlan =
  | { readonly kind: 'done' }
  | { readonly kind: 'change'; readonly step: RotationStep; readonly keys: AccountKeys }
  | { readonly kind: 'refused'; readonly message: string }

export interface RotationState {
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  /** Lifetime of a credential, in milliseconds. */
  readonly lifetimeMs: number
  /** True if a server is known to have learned the next key. */
  readonly isNextKnown: boolean
}

/**
 * Plans a step of a rotation. A step that was taken before is `done`.
 *
 * @param asked - the requested step; other text is refused.
 */
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

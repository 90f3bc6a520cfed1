import { createNkey } from './nkey.ts'
import type { SigningKeys, TenancyKeys } from './tenancy-keys.ts'

/**
 * The steps by which the signing key of the account is replaced, one after the other:
 *
 * - `add`: a next key becomes known to the servers. They have to load their configuration before the following step.
 * - `use`: credentials are signed by it, all of them at once; the one before stays known.
 * - `remove`: the one before is known no more, once the servers have loaded their configuration.
 */
export const ROTATION_STEPS = ['add', 'use', 'remove'] as const

export type RotationStep = (typeof ROTATION_STEPS)[number]

/** What a step makes of the keys; `refused` says why it is not the one that is due. */
export type RotationPlan =
  | { readonly kind: 'done' }
  | { readonly kind: 'change'; readonly keys: TenancyKeys }
  | { readonly kind: 'refused'; readonly message: string }

/** Plans a step. One that has been taken is `done`, however often it is asked for. */
export function planRotation(keys: TenancyKeys, step: RotationStep): RotationPlan {
  const plan = PLANS[step](keys.signing)
  if (plan === 'done') return { kind: 'done' }
  if ('why' in plan) {
    const message = `got "${step}", but ${plan.why}: want "${plan.wanted}" first`
    return { kind: 'refused', message }
  }
  return { kind: 'change', keys: { ...keys, signing: plan } }
}

type SigningPlan = SigningKeys | 'done' | { readonly why: string; readonly wanted: RotationStep }

const PLANS: Readonly<Record<RotationStep, (keys: SigningKeys) => SigningPlan>> = {
  add: ({ current, next, previous }) => {
    if (next !== undefined) return 'done'
    if (previous !== undefined) return { why: 'the last rotation has not ended', wanted: 'remove' }
    return { current, next: createNkey('account') }
  },
  use: ({ current, next, previous }) => {
    if (next !== undefined) return { current: next, previous: current }
    return previous === undefined ? { why: 'there is no next key', wanted: 'add' } : 'done'
  },
  remove: ({ current, next, previous }) => {
    if (next !== undefined) return { why: 'the next key is not in use', wanted: 'use' }
    return previous === undefined ? 'done' : { current }
  },
}

/** @returns the step; undefined if `text` is none. */
export function toRotationStep(text: string): RotationStep | undefined {
  return ROTATION_STEPS.find((step) => step === text)
}

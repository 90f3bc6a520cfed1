import type { Mutation } from './mutation.ts'
import { REFERENCE_MUTATIONS } from './reference-mutations.ts'
import { RULE_MUTATIONS } from './rule-mutations.ts'
import { TYPE_MUTATIONS } from './type-mutations.ts'

/** The kinds of changes that break a valid ensemble. */
export const MUTATIONS: readonly Mutation[] = [
  ...REFERENCE_MUTATIONS,
  ...TYPE_MUTATIONS,
  ...RULE_MUTATIONS,
]

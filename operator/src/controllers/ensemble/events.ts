import type { Condition } from '@tutti/api'
import type { KubeObject } from '@tutti/kube'
import type { EventInput } from '../../runtime/events.ts'

/** Builds the event for a warning about a manifest that is accepted all the same. */
export function hasWarning(regarding: KubeObject, note: string): EventInput {
  return { regarding, type: 'Warning', reason: 'Warning', action: 'Check', note }
}

/** The conditions of an Ensemble with the status that needs a person; see ChangeOptions. */
export const BAD_OF_ENSEMBLE = [
  ['Accepted', 'False'],
  ['Degraded', 'True'],
] as const

/**
 * Reasons without an event: they heal by themselves, or another condition reports them, or they are reported once where they
 * arise.
 */
const QUIET: ReadonlySet<string> = new Set([
  'SchemaPending',
  'Pending',
  'EarlierGenerationServed',
  'RouterSettingsInvalid',
])

/** Returns the text of an event for a condition that went bad; undefined if the condition needs no event. */
export function eventTextOf({ reason, message }: Condition): string | undefined {
  return QUIET.has(reason) ? undefined : `${reason} ${message}`
}

import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'
import { POLL_FLAGS } from '@tutti/server'

/** Which models are served when: tritonserver's names and defaults. */
export const CONTROL_FLAGS = {
  'model-control-mode': {
    type: 'enum',
    values: ['none', 'poll', 'explicit'],
    default: 'none',
    description:
      'none: load all models at the start. poll: also follow changes in the repositories. explicit: clients load and unload models.',
  },
  'load-model': {
    type: 'string',
    repeatable: true,
    description:
      'Load this model at the start, in the mode explicit. Repeat the flag for more. * loads all models.',
  },
  'repository-poll-secs': POLL_FLAGS['repository-poll-secs'],
} as const satisfies FlagTable

export type ControlFlags = FlagValues<typeof CONTROL_FLAGS>

const ALL = '*'

/** @throws ServeError FLAG_INVALID if models are named in another mode than explicit, or `*` is not alone. */
export function checkControlFlags(
  flags: Pick<ControlFlags, 'model-control-mode' | 'load-model'>,
): void {
  const { 'model-control-mode': mode, 'load-model': names } = flags
  if (names.length === 0) return
  if (mode !== 'explicit') {
    const problem = `got "${names[0]}" in the mode ${mode}, want --model-control-mode=explicit`
    throw flagRefusal('--load-model', problem)
  }
  if (names.includes(ALL) && names.length > 1) {
    const problem = "wildcard model name '*' must be the ONLY startup model if specified at all"
    throw flagRefusal('--load-model', problem)
  }
}

/** The models that are loaded at the start, of all that there are. */
export function chooseStartModels(
  flags: Pick<ControlFlags, 'model-control-mode' | 'load-model'>,
  all: readonly string[],
): readonly string[] {
  const { 'model-control-mode': mode, 'load-model': names } = flags
  if (mode !== 'explicit' || names.includes(ALL)) return all
  return [...new Set(names)]
}

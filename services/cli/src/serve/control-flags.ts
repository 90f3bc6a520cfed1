import { readFileSync } from 'node:fs'
import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'
import { plainName } from '@tutti/model-config'
import { POLL_FLAGS } from '@tutti/server'
import { type ACCESS_FLAGS, type ControlGuard, createControlGuard } from '@tutti/serving'

/** Flags for the models that are served, and for who may load and unload them, with tritonserver's names and defaults. */
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
  'model-control-token-file': {
    type: 'string',
    path: 'file',
    description:
      'File with a bearer token that clients must send to load and unload models, in the mode explicit. It is read at each call.',
  },
  'model-control-loopback-only': {
    type: 'bool',
    default: false,
    description: 'Refuse loads and unloads that come from other machines, in the mode explicit.',
  },
  'repository-poll-secs': POLL_FLAGS['repository-poll-secs'],
} as const satisfies FlagTable

export type ControlFlags = FlagValues<typeof CONTROL_FLAGS>

const ALL = '*'

/** Checks `--load-model`. @throws ServeError FLAG_INVALID in a mode other than explicit, or if `*` is not alone. */
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

/**
 * Makes the guard that decides who may load and unload models.
 *
 * @throws ServeError FLAG_INVALID if callers are limited in a mode other than explicit, if the token's file comes with
 * `--access-file`, or if it cannot be read.
 */
export function readControlGuard(
  flags: Pick<
    ControlFlags,
    'model-control-mode' | 'model-control-token-file' | 'model-control-loopback-only'
  > &
    Partial<FlagValues<typeof ACCESS_FLAGS>>,
): ControlGuard {
  const {
    'model-control-mode': mode,
    'model-control-token-file': file,
    'model-control-loopback-only': isLoopbackOnly,
  } = flags
  if (mode !== 'explicit' && (file !== undefined || isLoopbackOnly)) {
    const name = file === undefined ? '--model-control-loopback-only' : TOKEN_FLAG
    throw flagRefusal(name, `got it in the mode ${mode}, want --model-control-mode=explicit`)
  }
  if (file !== undefined && flags['access-file'] !== undefined) {
    throw flagRefusal(TOKEN_FLAG, 'got it with --access-file, want `control: true` in that file')
  }
  if (file !== undefined) readToken(file)
  return createControlGuard({
    isLoopbackOnly,
    readToken: file === undefined ? undefined : () => readToken(file),
  })
}

/** Reads the token. It is read at each call, so that a new token counts at once. */
function readToken(file: string): string {
  let token = ''
  try {
    token = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw flagRefusal(TOKEN_FLAG, `cannot read the token: ${String(error)}`)
  }
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw flagRefusal(TOKEN_FLAG, `got ${file} with no token, want printable ASCII without spaces`)
}

const TOKEN_FLAG = '--model-control-token-file'

/**
 * Chooses the models that are loaded at the start.
 *
 * @param all - names of all models. If several repositories have a model of a given name, all of them are chosen.
 */
export function chooseStartModels(
  flags: Pick<ControlFlags, 'model-control-mode' | 'load-model'>,
  all: readonly string[],
): readonly string[] {
  const { 'model-control-mode': mode, 'load-model': names } = flags
  if (mode !== 'explicit' || names.includes(ALL)) return all
  const known = Map.groupBy(all, plainName)
  return [...new Set(names.flatMap((name) => known.get(name) ?? [name]))]
}

import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'

/** The flags of the console: its port, its address, and whether it sends requests. */
export const CONSOLE_FLAGS = {
  'console-port': {
    type: 'int',
    min: 0,
    max: 65_535,
    description:
      'Serve the console, a web page, at /console on this port; 0 takes any free port. Without it there is no console.',
  },
  'console-address': {
    type: 'string',
    default: '127.0.0.1',
    description:
      'Address of the console. All who reach it see the models, unless --access-file says who may.',
  },
  'console-infer': {
    type: 'bool',
    default: false,
    description:
      'Let the console send requests to models. All who reach it may, unless --access-file says who. Without it the console only shows.',
  },
} as const satisfies FlagTable

export type ConsoleFlags = FlagValues<typeof CONSOLE_FLAGS>

/**
 * Checks that the flags of the console fit together.
 *
 * @param flags.http-restricted-api - of `tutti serve`.
 * @throws ServeError FLAG_INVALID for a console beside calls that need a header, and for settings of a console without its port.
 */
export function checkConsoleFlags(
  flags: ConsoleFlags & { readonly 'http-restricted-api'?: readonly string[] },
): void {
  if (flags['console-port'] === undefined) {
    if (flags['console-infer']) throw withoutPort('--console-infer')
    if (flags['console-address'] === CONSOLE_FLAGS['console-address'].default) return
    throw withoutPort('--console-address')
  }
  if (!flags['http-restricted-api']?.length) return
  throw flagRefusal(
    '--console-port',
    'given with --http-restricted-api, whose header a browser does not send; want --access-file in its place',
  )
}

function withoutPort(flag: string) {
  return flagRefusal(flag, 'given without --console-port; want both, or none')
}

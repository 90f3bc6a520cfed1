import type { Executable, ProcessEnvironment } from '@tutti/chassis'
import manifest from '../package.json' with { type: 'json' }
import { loadOperatorConfig } from './config.ts'
import { checkOperatorFlags, OPERATOR_FLAGS } from './operator-flags.ts'
import { unhandledRejection } from './runtime/log-events.ts'
import { type OperatorOptions, startOperator } from './start-operator.ts'

/** The parts of the process that the operator uses. */
export interface OperatorEnvironment extends Pick<ProcessEnvironment, 'env' | 'exit'> {
  /** Calls the listener for each promise rejection that nothing handled. */
  onUnhandledRejection(listener: (error: unknown) => void): void
}

/** Makes the executable of the operator: its flags, their check and its start. */
export function operatorExecutable(
  environment: OperatorEnvironment,
  o: Pick<OperatorOptions, 'createControllers'> = {},
): Executable<typeof OPERATOR_FLAGS> {
  return {
    name: 'tutti-operator',
    version: manifest.version,
    usage: 'tutti-operator [FLAGS]',
    flags: OPERATOR_FLAGS,
    processFlags: (flags) => flags,
    check: checkOperatorFlags,
    start: async ({ flags, log, health, signal }) => {
      const exit = (code: number): void => environment.exit(code, false)
      // It may have left half a change: the next process looks at everything anew.
      environment.onUnhandledRejection((error) => {
        unhandledRejection(log, error)
        exit(1)
      })
      const config = loadOperatorConfig(environment.env)
      return await startOperator({ ...o, flags, log, health, signal, config, exit })
    },
  }
}

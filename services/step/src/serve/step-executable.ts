import type { Executable } from '@tutti/chassis'
import { REFUSED_OVER_BROKERS } from '@tutti/server'
import { checkTlsFlags } from '@tutti/serving'
import { readMetricsFlags } from '@tutti/telemetry'
import { readBrokerFlags } from '@tutti/transport'
import manifest from '../../package.json' with { type: 'json' }
import { readOtherModels } from './model-directories.ts'
import { checkModelFlags } from './model-flags.ts'
import { startStep } from './start-step.ts'
import { STEP_FLAGS } from './step-flags.ts'

/** The step as a program; `tutti step` and `tutti-step` are the same. */
export const stepExecutable: Executable<typeof STEP_FLAGS> = {
  name: 'tutti-step',
  version: manifest.version,
  usage:
    'tutti step --model-repository DIR [--model NAME ...] [--ensemble NAME ...] | --model-directory NAME=DIR | --builtins --nats URL [FLAGS]',
  flags: STEP_FLAGS,
  refusedFlags: {
    ...REFUSED_OVER_BROKERS,
    'trace-config': 'routers have it, and trace the steps that they call',
  },
  processFlags: (flags) => flags,
  check: (flags) => {
    const others = readOtherModels(flags)
    checkModelFlags(flags, { hasOthers: others.directories.length > 0 || flags.builtins })
    checkTlsFlags(flags)
    readMetricsFlags(flags)
    readBrokerFlags(flags)
  },
  start: startStep,
}

import type { Executable } from '@tutti/chassis'
import { toBrokerOptions } from '@tutti/transport'
import { checkModelFlags } from './scan-models.ts'
import { startStep } from './start-step.ts'
import { STEP_FLAGS } from './step-flags.ts'

/** The step as a program; `tutti step` and `tutti-step` are the same. */
export const stepExecutable: Executable<typeof STEP_FLAGS> = {
  name: 'tutti-step',
  usage: 'tutti step --model-repository DIR [--model NAME ...] --nats URL [FLAGS]',
  flags: STEP_FLAGS,
  processFlags: (flags) => flags,
  check: (flags) => {
    checkModelFlags(flags)
    toBrokerOptions(flags)
  },
  start: startStep,
}

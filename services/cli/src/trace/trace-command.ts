import type { FlagTable } from '@tutti/chassis'
import { CONNECTION_FLAGS, openClient, readModelName, URL_FLAG } from '@tutti/command-line/client'
import { withFlags } from '@tutti/command-line/command'
import { ASK_FOR_STEPS, TRACED_FLAGS, TraceResult, traceModel } from '@tutti/command-line/trace'

export const TRACE_COMMAND_FLAGS = {
  ...TRACED_FLAGS,
  url: URL_FLAG,
  ...CONNECTION_FLAGS,
} as const satisfies FlagTable

export const traceCommand = withFlags(
  {
    usage: 'tutti trace MODEL --input NAME=VALUE [FLAGS]',
    flags: TRACE_COMMAND_FLAGS,
    operands: ['model'],
    result: TraceResult,
  },
  async ({ flags, positionals }, environment) => {
    const model = readModelName(positionals)
    const client = await openClient(flags, environment, ASK_FOR_STEPS)
    await traceModel(client, { model, flags, environment })
    return 0
  },
)

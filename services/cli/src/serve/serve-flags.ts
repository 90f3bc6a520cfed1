import { type FlagTable, type FlagValues, PROCESS_FLAGS } from '@tutti/chassis'
import { CONSOLE_FLAGS } from '@tutti/console'
import { CACHE_FLAGS } from '@tutti/response-cache'
import { NESTING_FLAGS } from '@tutti/router'
import { SERVER_FLAGS } from '@tutti/server'
import { ACCESS_FLAGS, HEADER_FLAGS } from '@tutti/serving'
import { MODEL_FLAGS } from '@tutti/step'
import { METRICS_FLAGS, TRACE_FLAGS } from '@tutti/telemetry'
import { PYTHON_FLAGS } from './choose-python.ts'
import { CONTROL_FLAGS } from './control-flags.ts'
import { MANIFEST_FLAGS } from './manifest-flags.ts'
import { TRITON_FLAGS } from './triton-flags.ts'

const { 'exit-timeout-secs': exitTimeout, ...logging } = PROCESS_FLAGS
const { 'model-repository': repository, ...loading } = MODEL_FLAGS

/** The flags of `tutti serve`: tritonserver's names and defaults where it has the flag; README.md says where they differ. */
export const SERVE_FLAGS = {
  'model-repository': repository,
  ...MANIFEST_FLAGS,
  ...CONTROL_FLAGS,
  ...loading,
  ...PYTHON_FLAGS,
  'exit-timeout-secs': exitTimeout,
  ...NESTING_FLAGS,
  ...CACHE_FLAGS,
  ...SERVER_FLAGS,
  ...CONSOLE_FLAGS,
  ...ACCESS_FLAGS,
  ...HEADER_FLAGS,
  ...METRICS_FLAGS,
  ...TRACE_FLAGS,
  ...logging,
  ...TRITON_FLAGS,
} as const satisfies FlagTable

export type ServeFlags = FlagValues<typeof SERVE_FLAGS>

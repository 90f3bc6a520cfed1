import { ServeError } from '@tutti/errors'
import type { InferenceBackend } from '../inference-backend.ts'
import type { ControlCall, ControlCalls } from '../request/control-calls.ts'
import {
  type ControlParameter,
  readLoadParameters,
  readUnloadDependents,
} from '../request/load-parameters.ts'
import { requireControl } from '../request/model-control.ts'
import { toCaller } from './grpc-caller.ts'
import { requireLive, unary } from './method.ts'
import type { ServerCall } from './server-call.ts'

interface RepositoryRequest {
  readonly repository_name: string
}

/** `inference.ModelRepositoryParameter`. */
interface RepositoryParameter {
  readonly parameter_choice?: 'bool_param' | 'int64_param' | 'string_param' | 'bytes_param'
  readonly bool_param?: boolean
  readonly int64_param?: string
  readonly string_param?: string
  readonly bytes_param?: Uint8Array
}

interface ControlRequest extends RepositoryRequest {
  readonly model_name: string
  readonly parameters: Readonly<Record<string, RepositoryParameter>>
}

function refuseRepositoryName({ repository_name }: RepositoryRequest): void {
  if (repository_name === '') return
  throw new ServeError('UNSUPPORTED', "'repository_name' specification is not supported", {
    details: { field: 'repository_name' },
  })
}

function check(request: RepositoryRequest, backend: InferenceBackend): void {
  requireLive(backend)
  refuseRepositoryName(request)
}

/** The calls about the model repository. */
export function repositoryHandlers(control: ControlCalls) {
  return {
    RepositoryIndex: unary(
      async (request: RepositoryRequest & { readonly ready: boolean }, { backend }) => {
        check(request, backend)
        const models = await backend.repositoryIndex(request.ready)
        return { models: models.map((entry) => ({ ...entry })) }
      },
    ),
    RepositoryModelLoad: unary(async (request: ControlRequest, call) => {
      const { backend } = call
      check(request, backend)
      await control.run(toControlCall('load', call, request), async () => {
        const parameters = readLoadParameters(toParameters(request))
        await requireControl(backend.control).load(request.model_name, parameters)
      })
      return {}
    }),
    RepositoryModelUnload: unary(async (request: ControlRequest, call) => {
      const { backend } = call
      check(request, backend)
      await control.run(toControlCall('unload', call, request), async () => {
        const unloadDependents = readUnloadDependents(toParameters(request))
        await requireControl(backend.control).unload(request.model_name, { unloadDependents })
      })
      return {}
    }),
  }
}

/** The calls that set traces and logs in Triton: not offered, and refused to those first who may not even ask. */
export function settingsHandlers(control: ControlCalls) {
  const refuse = (action: 'trace settings' | 'log settings') =>
    unary(async (_request, call) =>
      control.run(toControlCall(action, call), () => {
        throw new ServeError('UNSUPPORTED', `${action} are not offered by this server`)
      }),
    )
  return { TraceSetting: refuse('trace settings'), LogSettings: refuse('log settings') }
}

function toControlCall(
  action: ControlCall['action'],
  { backend, headers, stream }: ServerCall,
  request?: Pick<ControlRequest, 'model_name'>,
): ControlCall {
  return { ...toCaller(stream, headers), action, model: request?.model_name, backend }
}

function toParameters({ parameters }: ControlRequest): readonly ControlParameter[] {
  return Object.entries(parameters).map(([name, parameter]) => ({
    name,
    value: toValue(parameter),
  }))
}

function toValue(parameter: RepositoryParameter): ControlParameter['value'] {
  const { parameter_choice: choice } = parameter
  if (choice === undefined) return undefined
  // No parameter is an integer, and as text one would pass for a string.
  return choice === 'int64_param' ? 0n : parameter[choice]
}

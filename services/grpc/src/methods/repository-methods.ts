import { ServeError } from '@tutti/errors'
import { decodeRepositoryRequest, type RepositoryRequestMessage } from '@tutti/protocol'
import {
  type ControlCall,
  type ControlCalls,
  type ControlParameter,
  type InferenceBackend,
  type ModelControl,
  readLoadParameters,
  readUnloadDependents,
  requireControl,
} from '@tutti/serving'
import type { ServerCall } from '../call/server-call.ts'
import { type Handler, type MethodRecord, requireLive, unary } from './method.ts'

function check(repositoryName: string, backend: InferenceBackend): void {
  requireLive(backend)
  if (repositoryName === '') return
  throw new ServeError('UNSUPPORTED', "'repository_name' specification is not supported", {
    details: { field: 'repository_name' },
  })
}

/** Builds the methods about the model repository. */
export function repositoryMethods(control: ControlCalls): Readonly<Record<string, MethodRecord>> {
  return {
    RepositoryIndex: {
      group: 'model-repository',
      admission: 'control',
      serve: unary(async (request: { repository_name: string; ready: boolean }, { backend }) => {
        check(request.repository_name, backend)
        const models = await backend.repositoryIndex(request.ready)
        return { models: models.map((entry) => ({ ...entry })) }
      }),
    },
    RepositoryModelLoad: {
      group: 'model-repository',
      admission: 'request',
      serve: controlHandler('load', control, (models, { modelName, parameters }) =>
        models.load(modelName, readLoadParameters(toParameters(parameters))),
      ),
    },
    RepositoryModelUnload: {
      group: 'model-repository',
      admission: 'control',
      serve: controlHandler('unload', control, (models, { modelName, parameters }) =>
        models.unload(modelName, {
          unloadDependents: readUnloadDependents(toParameters(parameters)),
        }),
      ),
    },
  }
}

/** Makes the handler of a control call. Its message, which may be large, is read only from callers who may make the call. */
function controlHandler(
  action: 'load' | 'unload',
  control: ControlCalls,
  apply: (models: ModelControl, request: RepositoryRequestMessage) => Promise<void>,
): Handler {
  const serve = unary(async (request: RepositoryRequestMessage, call) => {
    const { backend } = call
    check(request.repositoryName, backend)
    await control.run(toControlCall(action, call, request.modelName), () =>
      apply(requireControl(backend.control), request),
    )
    return {}
  })
  return (call, definition) => {
    try {
      requireLive(call.backend)
      control.check(toControlCall(action, call))
    } catch (error) {
      return call.refuse(ServeError.from(error))
    }
    serve(call, { ...definition, requestDeserialize: decodeRepositoryRequest })
  }
}

export function toControlCall(
  action: ControlCall['action'],
  { backend, headers, socket }: ServerCall,
  model?: string,
): ControlCall {
  return { headers, socket, action, model, backend }
}

function toParameters(
  parameters: RepositoryRequestMessage['parameters'],
): readonly ControlParameter[] {
  return [...parameters].map(([name, value]) => ({ name, value }))
}

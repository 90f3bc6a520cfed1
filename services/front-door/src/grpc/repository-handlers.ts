import { ServeError } from '@tutti/errors'
import type { InferenceBackend } from '../inference-backend.ts'
import { requireLive } from './infer-call.ts'
import { type HandlerContext, unary } from './unary-handler.ts'

interface RepositoryRequest {
  readonly repository_name: string
}

function refuseRepositoryName({ repository_name }: RepositoryRequest): void {
  if (repository_name === '') return
  throw new ServeError('UNSUPPORTED', "'repository_name' specification is not supported", {
    details: { field: 'repository_name' },
  })
}

/** The calls about the model repository. Models are loaded at the start and stay: control mode `none`. */
export function repositoryHandlers(context: HandlerContext, backend: InferenceBackend) {
  const refuseControl = (request: RepositoryRequest): never => {
    requireLive(backend)
    refuseRepositoryName(request)
    throw new ServeError(
      'MODEL_CONTROL_REFUSED',
      'explicit model load / unload is not allowed if polling is enabled',
    )
  }
  return {
    RepositoryIndex: unary(context, (request: RepositoryRequest & { readonly ready: boolean }) => {
      requireLive(backend)
      refuseRepositoryName(request)
      const models = backend.repositoryIndex(request.ready)
      return { models: models.map((entry) => ({ ...entry })) }
    }),
    RepositoryModelLoad: unary(context, refuseControl),
    RepositoryModelUnload: unary(context, refuseControl),
  }
}

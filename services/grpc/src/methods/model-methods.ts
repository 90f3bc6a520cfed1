import { ServeError } from '@tutti/errors'
import { modelConfigToProto, statisticsToProto } from '@tutti/protocol'
import type { ServerIdentity } from '@tutti/serving'
import { type HealthWatches, healthStateOf } from './health-watch.ts'
import { atOnce, type MethodRecord, requireLive, unary } from './method.ts'

interface NamedVersion {
  readonly name: string
  readonly version: string
}

/** Builds the methods about the server itself. */
export function serverMethods(identity: ServerIdentity): Readonly<Record<string, MethodRecord>> {
  return {
    ServerLive: {
      group: 'health',
      admission: 'none',
      serve: atOnce(({ backend }) => {
        if (!backend.isLive()) throw new ServeError('SERVER_STOPPING', 'Server exiting')
        return { live: true }
      }),
    },
    ServerReady: {
      group: 'health',
      admission: 'none',
      serve: atOnce(({ backend }) => ({
        ready: backend.isLive() && backend.isReady(),
      })),
    },
    ServerMetadata: {
      group: 'metadata',
      admission: 'control',
      serve: unary((_request, { backend }) => {
        requireLive(backend)
        const { name, version, extensions } = identity
        return { name, version, extensions: [...extensions] }
      }),
    },
  }
}

/** Builds the methods about models, except inference. */
export function modelMethods(): Readonly<Record<string, MethodRecord>> {
  return {
    ModelReady: {
      group: 'health',
      admission: 'control',
      serve: unary(async ({ name, version }: NamedVersion, { backend }) => {
        requireLive(backend)
        return { ready: await backend.isModelReady(name, version) }
      }),
    },
    ModelMetadata: {
      group: 'metadata',
      admission: 'control',
      serve: unary(({ name, version }: NamedVersion, { backend }) => {
        requireLive(backend)
        const { versions, inputs, outputs, ...rest } = backend.modelMetadata(name, version)
        const toMessage = (tensor: (typeof inputs)[number]) => ({
          name: tensor.name,
          datatype: tensor.datatype,
          shape: [...tensor.shape],
        })
        return {
          ...rest,
          versions: [...versions],
          inputs: inputs.map(toMessage),
          outputs: outputs.map(toMessage),
        }
      }),
    },
    ModelConfig: {
      group: 'model-config',
      admission: 'control',
      serve: unary(({ name, version }: NamedVersion, { backend }) => {
        requireLive(backend)
        return { config: modelConfigToProto(backend.resolve(name, version).config) }
      }),
    },
    ModelStatistics: {
      group: 'statistics',
      admission: 'control',
      serve: unary(async ({ name, version }: NamedVersion, { backend }) => {
        requireLive(backend)
        return statisticsToProto(await backend.statistics(name, version))
      }),
    },
  }
}

/** Builds the methods of `grpc.health.v1.Health`. @param watches - absent: `Watch` is not offered, as in Triton. */
export function healthMethods(watches?: HealthWatches): Readonly<Record<string, MethodRecord>> {
  return {
    Check: {
      group: 'health',
      admission: 'none',
      serve: atOnce(({ backend }) => ({ status: healthStateOf(backend) })),
    },
    Watch: {
      group: 'health',
      admission: 'none',
      serve: watches?.serve ?? ((call) => call.refuse(noWatch())),
    },
  }
}

function noWatch(): ServeError {
  const text =
    'health Watch is not offered: start the server with --grpc-health-watch, or use Check'
  return new ServeError('UNSUPPORTED', text)
}

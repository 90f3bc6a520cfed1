import { silentLogger, systemClock } from '@tutti/chassis'
import { type Client, createClient, createTransport, type Resource } from '@tutti/kube'
import { type ApiServer, startApiServer } from '@tutti/kube/testing'
import { nkeys } from 'nats'
import {
  ISSUER_SECRET,
  installCrds,
  OPERATOR_ACCOUNT,
  OPERATOR_NAMESPACE,
  permitOperator,
} from './operator-server.ts'

/** Models of one namespace. */
export const PER_NAMESPACE = 500
const AT_ONCE = 32

/** As the API server serves Models. */
export const MODEL: Resource = {
  group: 'tutti.dev',
  version: 'v1alpha1',
  plural: 'models',
  kind: 'Model',
  namespaced: true,
}
/** A namespaced object. */
export interface Place {
  readonly namespace: string
  readonly name: string
}

/** An API server with Models, and what an operator of them needs. */
export interface OperatorCluster {
  readonly server: ApiServer
  readonly client: Client
  readonly models: readonly Place[]
  /** Folder of the operator's service account. */
  readonly accountFolder: string
}

/** Starts a real API server without Kubernetes' own controllers and makes Models; `opened` stops it. */
export async function openOperatorCluster(
  opened: AsyncDisposableStack,
  count: number,
): Promise<OperatorCluster> {
  const server = await startApiServer()
  opened.defer(() => server.stop())
  const transport = createTransport(server.access(), {
    clock: systemClock,
    log: silentLogger,
    userAgent: 'bench',
  })
  opened.defer(() => transport.close())
  const client = createClient(transport)
  await installCrds(server)
  await permitOperator(server)
  const models = await createModels(client, server, count)
  const accountFolder = await server.createServiceAccountDir(OPERATOR_NAMESPACE, OPERATOR_ACCOUNT)
  await createIssuer(server)
  return { server, client, models, accountFolder }
}

/** Makes the Secret from which the operator issues credentials for NATS servers that it does not run. */
async function createIssuer({ plain }: ApiServer): Promise<void> {
  await plain.create(`/api/v1/namespaces/${OPERATOR_NAMESPACE}/secrets`, {
    metadata: { name: ISSUER_SECRET },
    stringData: {
      'account.pub': nkeys.createAccount().getPublicKey(),
      'signing.nk': Buffer.from(nkeys.createAccount().getSeed()).toString(),
    },
  })
}

async function createModels(
  client: Client,
  { plain }: ApiServer,
  count: number,
): Promise<readonly Place[]> {
  const places = Array.from({ length: count }, (_, i) => ({
    namespace: `ns-${Math.floor(i / PER_NAMESPACE)}`,
    name: `m${i}`,
  }))
  for (const namespace of new Set(places.map((place) => place.namespace))) {
    await plain.create('/api/v1/namespaces', { metadata: { name: namespace } })
  }
  const left = places.values()
  const clientLoop = async (): Promise<void> => {
    for (const metadata of left) {
      const spec = { modelFormat: { name: 'onnx' }, storageUri: `pvc://models/${metadata.name}` }
      const model: { metadata: Place; spec: object } = { metadata, spec }
      await client.create(MODEL, model, { fieldManager: 'bench' })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, clientLoop))
  return places
}

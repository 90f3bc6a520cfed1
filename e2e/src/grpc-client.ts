import type { requestCallback, ServiceError } from '@grpc/grpc-js'
import { type GRPCInferenceServiceClient, InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import type { Target } from './serving.ts'

/** A client on a connection of its own that is closed with the test. */
export function openClient(t: Test, target: Pick<Target, 'grpcPort'>): InferenceClient {
  const client = new InferenceClient({ address: `127.0.0.1:${target.grpcPort}` })
  t.teardown(() => client.close())
  return client
}

type Calls = GRPCInferenceServiceClient
/** The calls of the service that are neither ModelInfer nor ModelStreamInfer. */
type CallName = Exclude<Extract<keyof Calls, `${'M' | 'R' | 'S'}${string}`>, `${string}Infer`>
type Last<List extends readonly unknown[]> = List extends readonly [...unknown[], infer Item]
  ? Item
  : never
type AnswerOf<Name extends CallName> =
  Last<Parameters<Calls[Name]>> extends requestCallback<infer Answer> ? Answer : never

/** Calls a method other than the inference ones. @throws ServiceError */
export function ask<Name extends CallName>(
  client: InferenceClient,
  name: Name,
  request: object = {},
): Promise<AnswerOf<Name>> {
  return new Promise((resolve, reject) => {
    const done = (error: ServiceError | null, answer?: AnswerOf<Name>): void => {
      if (answer !== undefined) resolve(answer)
      else reject(error ?? new Error(`${name} gave neither an answer nor an error`))
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every call has this overload
    const call = client.objects[name] as unknown as (request: object, callback: typeof done) => void
    call.call(client.objects, request, done)
  })
}

/** The statistics of a model that has one version. */
export async function statisticsOf(
  client: InferenceClient,
  name: string,
): Promise<AnswerOf<'ModelStatistics'>['model_stats'][number]> {
  const { model_stats: all } = await ask(client, 'ModelStatistics', { name })
  const [only] = all
  if (only === undefined || all.length > 1) {
    throw new Error(`${all.length} versions of ${name} have statistics, want one`)
  }
  return only
}

import t from 'tap'
import { openClient } from './grpc-client.ts'
import { restInfer } from './rest-infer.ts'
import { serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'
import { fp32 } from './tensors.ts'

t.setTimeout(600_000)

await t.test(
  'an error of a step says where, in the gRPC trailers and in the HTTP headers',
  async (t) => {
    const repository = await copyModels(t, ['ens_fail', 'identity_fp32_nonbatch', 'fail_at_run'])
    const serving = await serve(t, { repositories: [repository] })
    const inputs = [fp32('x', [7, 7, 7])]
    const where = { ensemble: 'ens_fail', step: 'fail_at_run', model: 'fail_at_run', attempt: '1' }

    const request = {
      modelName: 'ens_fail',
      modelVersion: '',
      id: '',
      parameters: new Map(),
      inputs,
    }
    const error: unknown = await openClient(t, serving)
      .infer({ ...request, outputs: [] })
      .catch((thrown: unknown) => thrown)
    t.match(error, {
      code: 'INTERNAL',
      reason: 'ENGINE_FAILED',
      message: /^in ensemble 'ens_fail', onnx runtime error/,
      details: { ...where, replica: String },
    })

    const answer = await restInfer(serving, 'ens_fail', inputs)
    t.equal(answer.status, 500)
    t.match(answer.headers, {
      'tutti-error-reason': 'ENGINE_FAILED',
      'tutti-error-ensemble': 'ens_fail',
      'tutti-error-step': 'fail_at_run',
      'tutti-error-model': 'fail_at_run',
      'tutti-error-attempt': '1',
    })
    t.match(answer.json(), { error: /^in ensemble 'ens_fail', onnx runtime error/ })
  },
)

import t from 'tap'
import { withoutMemoryLimits } from '../faults/memory.ts'
import { createMemoryGroup } from '../faults/memory-group.ts'
import { restCall } from '../rest-call.ts'
import { serve } from '../serving.ts'
import { attackedModels } from './attacked-models.ts'
import { GROWING_MODEL } from './held-bytes.ts'
import { PICTURE_ENSEMBLE, sendPicture, sendTexts } from './large-calls.ts'

t.setTimeout(300_000)

const LIMIT_BYTES = 2 * 2 ** 30

await t.test('no picture takes a server with it', { skip: withoutMemoryLimits() }, async (t) => {
  const { within } = createMemoryGroup(t, LIMIT_BYTES)
  const serving = await serve(t, {
    repositories: ['model_repository'],
    flags: ['--model-control-mode=explicit', `--load-model=${PICTURE_ENSEMBLE}`],
    within,
  })
  const send = (side: number) => sendPicture(serving.grpcPort, PICTURE_ENSEMBLE, side)
  t.equal(await send(256), '0')
  // 143 KB and less, which are up to 147 MB of zeros, and some gigabytes between the steps.
  for (const side of [7000, 6000, 5000, 4000, 3000]) {
    t.match(await send(side), /^[08]$/, `${side} pixels`)
    const { status } = await restCall(serving.httpPort, 'GET', '/v2/health/ready')
    t.equal(status, 200, 'the server lives')
  }
  t.equal(await send(7000), '8', 'as overload')
})

await t.test(
  'nor do those that a model gets directly, nor very many strings',
  { skip: withoutMemoryLimits() },
  async (t) => {
    const { within } = createMemoryGroup(t, LIMIT_BYTES)
    const flags = ['--model-control-mode=explicit', '--load-model=*']
    const serving = await serve(t, { repositories: await attackedModels(t), flags, within })
    const { grpcPort, httpPort } = serving
    // 255 KB compressed; the runtime makes 64 bytes of each string, twice.
    const statuses = [await sendTexts(grpcPort, '', 60 * 2 ** 20)]
    const pictures = [7000, 5000, 4000].map((side) => sendPicture(grpcPort, GROWING_MODEL, side))
    statuses.push(...(await Promise.all(pictures)))
    for (const status of statuses) t.match(status, /^[08]$/)
    t.equal(await sendTexts(grpcPort, 'x', 1000), '0')
    t.equal((await restCall(httpPort, 'GET', '/v2/health/ready')).status, 200, 'the server lives')
  },
)

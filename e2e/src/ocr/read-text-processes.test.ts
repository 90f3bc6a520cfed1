// needs: ocr, nats
import { join } from 'node:path'
import t from 'tap'
import { SKIP, startHarness } from '../processes/harness.ts'
import { untilReady } from '../processes/seen.ts'
import { restInfer } from '../rest-infer.ts'
import { serve, type Target } from '../serving.ts'
import {
  fileTensor,
  placeNetworks,
  READ_TEXT_MANIFEST,
  renderPictures,
  WITHOUT_OCR,
} from './read-text.ts'

t.setTimeout(300_000)

const NETWORKS = ['line_finder', 'line_direction', 'line_reader']

await t.test(
  'over processes the example gives the bytes that one process gives',
  {
    skip: WITHOUT_OCR || SKIP,
  },
  async (t) => {
    const { folder, flag } = await placeNetworks(t)
    const one = await serve(t, { repositories: [], flags: [`-f=${READ_TEXT_MANIFEST}`, flag] })
    const harness = await startHarness(t)
    const directories = NETWORKS.map((name) => `--model-directory=${name}=${join(folder, name)}`)
    const [router] = await Promise.all([
      harness.router({ repositories: [folder], flags: [`-f=${READ_TEXT_MANIFEST}`] }),
      harness.step({ repositories: [], flags: directories }),
      harness.step({ repositories: [], flags: ['--builtins'] }),
    ])
    await untilReady([router], [...NETWORKS, 'read_text'])
    const { files } = await renderPictures(t, 6)
    const ask = async (target: Target, picture: Buffer): Promise<Buffer> => {
      const answer = await restInfer(target, 'read_text', [fileTensor(picture)])
      t.equal(answer.status, 200)
      return answer.body
    }
    for (const [name, picture] of files) {
      const [here, there] = [await ask(one, picture), await ask(router, picture)]
      t.ok(here.byteLength > 0 && here.equals(there), `${name}: ${here.byteLength} bytes`)
    }
  },
)

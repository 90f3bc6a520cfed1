// needs: nats, chromium
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import { BASIC, SKIP, startHarness } from '../processes/harness.ts'
import { restCall } from '../rest-call.ts'
import { parseLine } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { NO_BROWSER, openBrowser, openPage } from './browser.ts'
import { CHAIN_REQUEST } from './serve-console.ts'

t.setTimeout(120_000)

await t.test(
  'a router shows its own view, steps over the broker included',
  { skip: SKIP || NO_BROWSER },
  async (t) => {
    const harness = await startHarness(t)
    const models = { repositories: [BASIC], models: ['add_one_batch'] }
    const step = await harness.step(models)
    const repositories = [await copyModels(t, ['ens_chain'])]
    const router = await harness.router({ repositories, flags: ['--console-port=0'] })
    const ready = router.process.lines.map(parseLine).find((line) => line['consolePort'])
    const port = Number(ready?.['consolePort'])
    const { page, complaints } = await openPage(await openBrowser(t), { port })
    await page.goto('/console')
    await page.getByText(`router ${router.id}`).waitFor()
    await page.getByRole('link', { name: 'ens_chain' }).click()
    const rate = page.locator('.graph .step .now').first()
    await until('a rate is shown', async () => {
      await restCall(router.httpPort, 'POST', '/v2/models/ens_chain/infer', { body: CHAIN_REQUEST })
      return /[1-9].*\/s/.test(await rate.innerHTML())
    })
    await step.process.stop('SIGKILL')
    await page.getByText('no replica serves', { exact: false }).first().waitFor()
    t.ok(await page.locator('.graph .step').first().isVisible(), 'the graph stays')
    t.same(complaints, [])
  },
)

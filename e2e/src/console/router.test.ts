// needs: nats, chromium
import { hostname } from 'node:os'
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import { BASIC, SKIP, startHarness } from '../processes/harness.ts'
import { restCall } from '../rest-call.ts'
import { parseLine } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { axe, NO_BROWSER, openBrowser, openPage, picture } from './browser.ts'
import { CHAIN_REQUEST } from './serve-console.ts'

t.setTimeout(120_000)

await t.test(
  'a router shows its own view, steps over the broker included',
  { skip: SKIP || NO_BROWSER },
  async (t) => {
    const harness = await startHarness(t)
    const models = { repositories: [BASIC], models: ['add_one_batch'] }
    const step = await harness.step(models)
    const other = await harness.step(models)
    const repositories = [await copyModels(t, ['ens_chain'])]
    const router = await harness.router({ repositories, flags: ['--console-port=0'] })
    const ready = router.process.lines.map(parseLine).find((line) => line['consolePort'])
    const port = Number(ready?.['consolePort'])
    const { page, complaints } = await openPage(await openBrowser(t), { port })
    await page.goto('/console')
    await page.getByText(`router ${router.id} on ${hostname()}`).waitFor()
    const second = await harness.router({ repositories })
    await page.getByText(`1 other router serves the same repository: ${second.id} on `).waitFor()
    await page.getByRole('link', { name: 'ens_chain' }).click()
    const rate = page.locator('.graph .step .now').first()
    await until('a rate is shown', async () => {
      await restCall(router.httpPort, 'POST', '/v2/models/ens_chain/infer', { body: CHAIN_REQUEST })
      return /[1-9].*\/s/.test(await rate.innerHTML())
    })
    await page.getByRole('button', { name: 'Show the replicas' }).click()
    const rows = page.getByRole('region', { name: 'Replicas' }).locator('tbody tr')
    await until('both replicas are shown with their rates, for both steps', async () => {
      await restCall(router.httpPort, 'POST', '/v2/models/ens_chain/infer', { body: CHAIN_REQUEST })
      const texts = await rows.allInnerTexts()
      const busy = texts.filter((text) => /[1-9][\d.]*\/s/.test(text) && text.includes('µs'))
      return texts.length === 4 && busy.length === 4
    })
    const row = rows.filter({ hasText: step.id }).first()
    t.match(await row.innerText(), new RegExp(`add_one_batch#0.*${hostname()}`, 's'))
    t.match(await row.innerText(), /taking work\s+v1 [0-9a-f]{12}\s+(nats|tcp|tls|unix)/)
    t.same(await axe(page), [])
    await picture(page, 'console-replicas', 'Replicas')
    process.kill(step.process.pid ?? 0, 'SIGSTOP')
    await row.getByText('suspect').waitFor()
    await row.getByText('gone').waitFor()
    await other.process.stop('SIGKILL')
    await page.getByText('no replica serves', { exact: false }).first().waitFor()
    t.ok(await page.locator('.graph .step').first().isVisible(), 'the graph stays')
    t.same(complaints, [])
  },
)

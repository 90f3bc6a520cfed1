// needs: chromium
import { createHash } from 'node:crypto'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import { restCall } from '../rest-call.ts'
import { copyModels, tempFolder } from '../temp-repository.ts'
import { axe, NO_BROWSER, openBrowser, openPage, picture } from './browser.ts'
import { CHAIN_REQUEST, longRepository, manyModels, serveConsole } from './serve-console.ts'

t.setTimeout(180_000)

const skip = NO_BROWSER

/** A folder may be called so, and a model may say so of itself. */
const HTML = `<img src=x onerror="document.title='owned'">`

await t.test('the views of a server', { skip }, async (t) => {
  const repository = await copyModels(t, [
    'add_one_batch',
    'ens_chain',
    'fail_at_run',
    'identity_fp32_nonbatch',
    'ens_fail',
  ])
  await mkdir(join(repository, HTML, '1'), { recursive: true })
  await writeFile(join(repository, HTML, 'config.pbtxt'), `name: "other <b>name</b>"`)
  const serving = await serveConsole(t, { repository })
  const browser = await openBrowser(t)
  const { page, complaints, foreign } = await openPage(browser, { port: serving.consolePort })

  await t.test(
    'the list shows states and reasons, and names that are HTML as they are',
    async (t) => {
      await page.goto('/')
      t.match(page.url(), /\/console$/)
      await page.getByRole('link', { name: 'ens_chain' }).waitFor()
      const row = page.getByRole('row', { name: HTML })
      await row.waitFor()
      t.match(await row.innerText(), /unavailable/)
      t.match(await row.innerText(), /<b>name<\/b>/)
      t.not(await page.title(), 'owned')
      t.equal(await page.locator('main img').count(), 0)
      await page.getByRole('searchbox').fill('chain')
      t.equal(await page.locator('tbody tr').count(), 1)
      await page.getByRole('searchbox').fill('')
      t.same(await axe(page), [])
    },
  )

  await t.test('an ensemble shows its graph, its types and what it does now', async (t) => {
    await page.getByRole('link', { name: 'ens_chain' }).click()
    await page.getByRole('heading', { level: 1, name: 'ens_chain' }).waitFor()
    const graph = page.getByRole('region', { name: 'Graph of the ensemble' })
    await graph.getByText('middle', { exact: true }).waitFor()
    t.equal(await graph.locator('.step').count(), 2)
    t.equal(await graph.locator('.edge').count(), 3)
    t.match(await graph.innerHTML(), /FP32 \[-1, 16\]/)
    const stop = callOften(serving.httpPort, 'ens_chain', CHAIN_REQUEST)
    const rates = graph.locator('.step .now')
    await until('the graph shows the rates', async () => {
      const texts = await rates.allTextContents()
      return texts.every((text) => /[1-9].*\/s · queue .*s · run .*s/.test(text))
    })
    await picture(page, 'console-ensemble')
    await stop()
    t.same(await axe(page), [])
  })

  await t.test('errors of a model are shown while they happen', async () => {
    await page.goto('/console#/models/ens_fail')
    await page.getByRole('heading', { level: 1, name: 'ens_fail' }).waitFor()
    const body = JSON.stringify({
      inputs: [{ name: 'x', datatype: 'FP32', shape: [4], data: [1, 1, 1, 1] }],
    })
    const stop = callOften(serving.httpPort, 'ens_fail', body)
    const errors = page.locator('dt:text-is("errors") + dd')
    await until('errors are shown', async () => /[1-9]/.test(await errors.innerText()))
    await stop()
  })

  await t.test('a request is caught while it happens, with the step that failed', async (t) => {
    await page.goto('/console#/models/ens_fail')
    const panel = page.locator('section', { hasText: 'One request' })
    await panel.getByRole('button', { name: 'Next failed one' }).click()
    await panel.getByText('Waiting for a request').waitFor()
    const body = JSON.stringify({
      id: HTML,
      inputs: [{ name: 'x', datatype: 'FP32', shape: [4], data: [1, 1, 1, 1] }],
    })
    const stop = callOften(serving.httpPort, 'ens_fail', body)
    const steps = panel.getByRole('region', { name: 'Steps of this request' })
    await steps.waitFor()
    await stop()
    t.match(await panel.innerText(), /failed in .* ENGINE_FAILED of step fail_at_run/)
    t.match(await panel.innerText(), `Request id ${HTML}`)
    t.match(await steps.getByRole('row', { name: 'fail_at_run' }).innerText(), /ENGINE_FAILED/)
    t.not(await page.title(), 'owned')
    t.same(await axe(page), [])
    await picture(page, 'console-caught', 'One request')
  })

  await t.test(
    'a slow one is awaited until it comes, and no longer than the page wants',
    async () => {
      await page.goto('/console#/models/ens_chain')
      const panel = page.locator('section', { hasText: 'One request' })
      await panel.getByLabel('of at least').fill('100000')
      await panel.getByRole('button', { name: 'Next slow one' }).click()
      await until('it passes others', async () => {
        await sendChain(serving.httpPort)
        return /[1-9]\d* were others/.test(await panel.innerText())
      })
      await panel.getByRole('button', { name: 'Stop' }).click()
      await panel.getByText('Waiting').waitFor({ state: 'detached' })
      await panel.getByLabel('of at least').fill('0')
      await panel.getByRole('button', { name: 'Next slow one' }).click()
      await panel.getByText('Waiting').waitFor()
      await until('it has one', async () => {
        await sendChain(serving.httpPort)
        return /critical/.test(await panel.innerText())
      })
    },
  )

  await t.test('everything can be reached by keyboard', async (t) => {
    await page.goto('/console#/models/ens_chain')
    await page.locator('.graph .step').first().waitFor()
    await page.reload()
    await page.locator('.graph .step').first().waitFor()
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate('document.activeElement.textContent.trim()'), 'Skip to content')
    await page.keyboard.press('Enter')
    t.equal(await page.evaluate('document.activeElement.id'), 'content')
    const reached: unknown[] = []
    for (let i = 0; i < 6; i++) {
      await page.keyboard.press('Tab')
      reached.push(
        await page.evaluate(
          `document.activeElement.getAttribute('aria-label') ?? document.activeElement.getAttribute('href')`,
        ),
      )
    }
    const named = reached.filter((one) => one !== null)
    t.match(named, ['#/', 'Graph of the ensemble', '#/models/add_one_batch'])
  })

  await t.test('it is as readable in the dark', async (t) => {
    const dark = await openPage(browser, { port: serving.consolePort, scheme: 'dark' })
    await dark.page.goto('/console#/models/ens_chain')
    await dark.page.locator('.graph .step').first().waitFor()
    t.same(await axe(dark.page), [])
    await picture(dark.page, 'console-ensemble-dark')
    t.same(dark.complaints, [])
  })

  await t.test('no error came up, and nothing was asked of other hosts', async (t) => {
    t.same(complaints, [])
    t.same(foreign, [])
  })
})

await t.test('a server that goes away and returns', { skip }, async (t) => {
  const repository = await copyModels(t, [
    'add_one_batch',
    'ens_chain',
    'ens_fail',
    'fail_at_run',
    'identity_fp32_nonbatch',
  ])
  const first = await serveConsole(t, { repository })
  const { page } = await openPage(await openBrowser(t), { port: first.consolePort })
  await page.goto('/console')
  await page.getByRole('link', { name: 'ens_chain' }).waitFor()
  await first.process.stop('SIGKILL')
  await page.getByRole('alert').waitFor()
  t.match(await page.getByRole('alert').innerText(), /does not answer/)
  t.ok(await page.getByRole('link', { name: 'ens_chain' }).isVisible(), 'what is known stays')
  await appendFile(join(repository, 'ens_chain', 'config.pbtxt'), '\nmax_batch_size: oops\n')
  await serveConsole(t, { repository, port: first.consolePort })
  await page.getByRole('alert').waitFor({ state: 'detached' })
  const row = page.getByRole('row', { name: 'ens_chain' })
  await row.getByText('unavailable').waitFor()
  t.match(await row.innerText(), /config\.pbtxt: line \d+, column \d+/)
  await picture(page, 'console-models')
})

const CONDITIONS = 'https://tutti.dev/docs/conditions/'
/** As the router of a namespace says it. */
const CLUSTER = {
  namespace: 'shop',
  failure: '',
  leftOut: 7,
  unready: [
    {
      kind: 'Ensemble',
      name: 'faces',
      model: 'faces',
      state: 'refused',
      reason: 'UnknownTensor',
      message:
        "steps[1](restore).inputMap[face]: got 'detect.faces', want an output of step 'detect'; did you mean 'face'?",
      help: `${CONDITIONS}#ensemble`,
    },
    {
      kind: 'Model',
      name: 'restore',
      model: 'gfpgan_v1.4',
      state: 'not ready',
      reason: 'ImagePullBackOff',
      message:
        'pod "restore-step-7d9c5", container "main": Back-off pulling image "registry.example/step:1"',
      help: `${CONDITIONS}#model`,
    },
    {
      kind: 'Model',
      name: 'add-one',
      model: 'add_one_batch',
      state: 'degraded',
      reason: 'OOMKilled',
      message: 'pod "add-one-step-5c8f4", container "main": ended with exit code 137',
      help: `${CONDITIONS}#model`,
    },
  ],
}

await t.test('what a server adds to its answers', { skip }, async (t) => {
  const repository = await copyModels(t, ['add_one_batch', 'ens_chain'])
  const { consolePort } = await serveConsole(t, { repository })
  const browser = await openBrowser(t)
  /** A page whose answers are changed on their way. */
  const openChanged = async (change: (answer: Record<string, unknown>) => object) => {
    const opened = await openPage(browser, { port: consolePort })
    await opened.page.route('**/console/api/**', async (route) => {
      const answer = await (await route.fetch()).json()
      await route.fulfill({ json: { ...answer, ...change(answer) } })
    })
    return opened
  }

  await t.test('a list without figures says so', async (t) => {
    const { page, complaints } = await openChanged(({ models }) => ({
      counts: undefined,
      models: Array.isArray(models) ? models.map((one) => ({ ...one, counts: undefined })) : models,
      countsFailure: 'step a does not answer',
    }))
    for (const address of ['/console', '/console#/models/ens_chain']) {
      await page.goto(address)
      await page.getByText('no figures now: step a does not answer').waitFor()
      t.ok(await page.getByRole('link', { name: 'add_one_batch' }).first().isVisible())
    }
    t.same(complaints, [])
  })

  await t.test('what a cluster refused or cannot run stands there with its reason', async (t) => {
    let cluster: object = CLUSTER
    const { page, complaints } = await openChanged(() => ({ cluster }))
    await page.goto('/console')
    const rows = page.getByRole('region', { name: 'Not ready' }).locator('tbody tr')
    await rows.first().waitFor()
    const cells = await rows.first().locator('th, td').allInnerTexts()
    t.same(cells.slice(0, 3), ['Ensemble faces', 'refused', 'UnknownTensor'])
    t.match(cells[3], /^steps\[1\]\(restore\)\.inputMap\[face\]\ngot 'detect\.faces', want/)
    t.equal(
      await page.getByRole('link', { name: 'UnknownTensor' }).getAttribute('href'),
      `${CONDITIONS}#ensemble`,
    )
    t.match(await rows.nth(1).innerText(), 'restore serves gfpgan_v1.4')
    t.equal(await rows.nth(1).getByRole('link').count(), 1, 'no router knows it')
    const panel = page.locator('section', { has: rows.first() })
    t.match(
      await panel.innerText(),
      /7 further ones .*line numbers are missing.*kubectl tutti status NAME --namespace shop/,
    )
    t.same(await axe(page), [])
    await picture(page, 'console-unready')
    const hostile = { ...CLUSTER.unready[1], name: HTML, model: HTML, reason: HTML, message: HTML }
    cluster = { ...CLUSTER, unready: [...CLUSTER.unready, hostile] }
    await rows.nth(3).waitFor()
    t.equal((await rows.nth(3).innerText()).split(HTML).length, 4, 'its name, reason and message')
    t.not(await page.title(), 'owned')
    await page.getByRole('link', { name: 'add-one', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'add_one_batch' }).waitFor()
    await page.getByText('ended with exit code 137').waitFor()
    t.same(complaints, [])
  })

  await t.test(
    'that it is not known stands there too, and how to find the nodes of pods',
    async (t) => {
      const failure = 'models.tutti.dev is forbidden'
      const { page, complaints } = await openChanged(({ replicas }) => ({
        cluster: { ...CLUSTER, unready: [], failure },
        replicas: inPods(replicas, ['add-step-7d9c5', '$(reboot)']),
      }))
      await page.goto('/console#/models/add_one_batch')
      await page
        .getByText(`not known which Models and Ensembles the operator refused: ${failure}`)
        .waitFor()
      const nodes = await page.getByText('On which nodes they are').innerText()
      t.match(nodes, /: kubectl get pods --namespace shop --output wide add-step-7d9c5$/)
      t.same(complaints, [])
    },
  )
})

/** Replicas of pods that call themselves so. */
function inPods(replicas: unknown, hosts: readonly string[]): unknown {
  if (typeof replicas !== 'object' || replicas === null || !('all' in replicas)) return replicas
  const [one] = Array.isArray(replicas.all) ? replicas.all : []
  return { ...replicas, all: hosts.map((host) => ({ ...one, host, replica: `of ${host}` })) }
}

await t.test('a token that is refused is not tried again', { skip }, async (t) => {
  const repository = await copyModels(t, ['add_one_batch'])
  const file = join(await tempFolder(t), 'access.yaml')
  const digest = createHash('sha256').update('s3cret').digest('hex')
  await writeFile(file, `identities: [{ name: ci, tokenSha256: [${digest}], models: ['*'] }]`)
  const flags = [`--access-file=${file}`]
  const { consolePort } = await serveConsole(t, { repository, flags })
  const { page } = await openPage(await openBrowser(t), { port: consolePort })
  const asked: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/console/api/')) asked.push(request.url())
  })
  await page.clock.install()
  await page.goto('/console')
  await page.getByLabel('Access token').waitFor()
  await page.clock.runFor(20_000)
  t.equal(asked.length, 1)
  await page.getByLabel('Access token').fill('s3cret')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('link', { name: 'add_one_batch' }).waitFor()
})

await t.test('200 steps, and 1,000 models', { skip }, async (t) => {
  const browser = await openBrowser(t)

  await t.test('a graph of 200 steps', async (t) => {
    const repository = await longRepository(t, 200)
    const { consolePort } = await serveConsole(t, { repository })
    const { page, complaints } = await openPage(browser, { port: consolePort })
    await page.goto('/console#/models/long')
    await page.locator('.graph .step').nth(199).waitFor()
    t.equal(await page.locator('table.steps tbody tr').count(), 200)
    t.same(await axe(page), [])
    await picture(page, 'console-200-steps')
    t.same(complaints, [])
  })

  await t.test('a list of 1,000 models', async (t) => {
    const repository = await manyModels(t, 1000)
    const flags = ['--model-control-mode=explicit']
    const { consolePort } = await serveConsole(t, { repository, flags })
    const { page, complaints } = await openPage(browser, { port: consolePort })
    await page.goto('/console')
    await page.getByText('1000 of 1000').waitFor()
    await page.getByRole('searchbox').fill('model_0777')
    await page.getByText('1 of 1000').waitFor()
    t.ok(await page.getByRole('link', { name: 'model_0777' }).isVisible())
    await picture(page, 'console-1000-models')
    t.same(complaints, [])
  })
})

/** Calls a model again and again. @returns ends it. */
function callOften(port: number, model: string, body: string): () => Promise<void> {
  const ending = new AbortController()
  const calling = (async () => {
    while (!ending.signal.aborted) {
      await restCall(port, 'POST', `/v2/models/${model}/infer`, { body: Buffer.from(body) })
    }
  })()
  return async () => {
    ending.abort()
    await calling
  }
}

function sendChain(port: number): Promise<unknown> {
  return restCall(port, 'POST', '/v2/models/ens_chain/infer', { body: CHAIN_REQUEST })
}

// needs: chromium, python
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import { restCall } from '../rest-call.ts'
import { ROOT } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { PYTHON } from '../triton-client.ts'
import { axe, NO_BROWSER, openBrowser, openPage, picture } from './browser.ts'
import { serveConsole } from './serve-console.ts'
import { numbersOf, openModel } from './try-form.ts'

t.setTimeout(180_000)

await t.test('a model with any number of responses', { skip: NO_BROWSER }, async (t) => {
  if (PYTHON === undefined) return t.comment('no Python')
  const from = `${ROOT}model_repository/.variants/fixtures/python`
  const repository = await copyModels(t, ['py_repeat'], { from })
  const flags = ['--console-infer', `--backend-config=python,interpreter=${PYTHON}`]
  const serving = await serveConsole(t, { repository, flags })
  const { page, complaints } = await openPage(await openBrowser(t), { port: serving.consolePort })
  const fill = async (values: string): Promise<void> => {
    await page.getByRole('group', { name: /^IN / }).getByRole('textbox').fill(values)
    await page
      .getByRole('group', { name: /^SIZE / })
      .getByRole('textbox')
      .fill('[2]')
    await page.getByRole('button', { name: 'Send' }).click()
  }
  await openModel(page, 'py_repeat')

  await t.test('its responses are shown as they come', async (t) => {
    await fill('[5, 6, 7]')
    await page.getByText('answered with 3 responses in').waitFor()
    t.same(await page.locator('.try summary').allInnerTexts(), [
      'Response 1',
      'Response 2',
      'Response 3',
    ])
    t.same(await numbersOf(page, 'OUT'), [7, 7], 'the last one is open')
    t.equal(await page.getByRole('region', { name: 'Steps of this request' }).count(), 1)
    t.same(await axe(page), [])
    await picture(page, 'console-try-stream', 'Try it')
  })

  await t.test('a failure comes after what was answered', async (t) => {
    await fill('[1, -5, 3]')
    await page.locator('form').getByRole('alert').waitFor()
    t.match(
      await page.locator('form').getByRole('alert').innerText(),
      /-5 is negative ENGINE_FAILED/,
    )
    t.same(await page.locator('.try summary').allInnerTexts(), ['Response 1'])
  })

  await t.test('one without an end can be cancelled, and the model learns of it', async (t) => {
    await fill(JSON.stringify(Array(200_000).fill(1)))
    const shown = page.locator('.try summary')
    await until('as many are shown as are kept', async () => (await shown.count()) === 20)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText(/answered with [\d,]+ responses in/).waitFor()
    t.equal(await shown.count(), 20)
    await until('the model has given it up', async () => {
      const { body } = await restCall(serving.metricsPort, 'GET', '/metrics')
      return /py_repeat_left\S* 1\b/.test(body.toString())
    })
  })

  t.same(complaints, [])
})

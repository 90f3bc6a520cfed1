// needs: chromium, python
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import type { Page } from 'playwright-core'
import t from 'tap'
import { restCall } from '../rest-call.ts'
import { runProgram } from '../serving.ts'
import { copyModels, tempFolder } from '../temp-repository.ts'
import { PYTHON } from '../triton-client.ts'
import { axe, NO_BROWSER, openBrowser, openPage, picture } from './browser.ts'
import { serveConsole } from './serve-console.ts'
import { numbersOf, openModel, send } from './try-form.ts'

t.setTimeout(180_000)

const skip = NO_BROWSER
const HTML = `<img src=x onerror="document.title='owned'">`
const INFER = ['--console-infer']

/** A PNG whose pixel at x, y is [x * 8, y * 8, 77]. */
async function drawPicture(page: Page) {
  const url: string = await page.evaluate(`(() => {
    const canvas = document.createElement('canvas')
    canvas.width = 24
    canvas.height = 16
    const context = canvas.getContext('2d')
    const image = context.createImageData(24, 16)
    for (let at = 0; at < 24 * 16; at++) {
      image.data.set([(at % 24) * 8, Math.floor(at / 24) * 8, 77, 255], at * 4)
    }
    context.putImageData(image, 0, 0)
    return canvas.toDataURL()
  })()`)
  const buffer = Buffer.from(url.replace('data:image/png;base64,', ''), 'base64')
  return { name: 'it’s a "plate".png', mimeType: 'image/png', buffer }
}

/** Clicks a button, and reads the file that it saves. */
async function download(page: Page, name: string): Promise<{ name: string; bytes: Buffer }> {
  const coming = page.waitForEvent('download')
  await page.getByRole('button', { name }).click()
  const file = await coming
  return { name: file.suggestedFilename(), bytes: await readFile(await file.path()) }
}

await t.test('a request from the page', { skip }, async (t) => {
  const repository = await copyModels(t, [
    'add_one_batch',
    'ens_chain',
    'big_identity',
    'identity_string',
    'identity_fp16',
    'fail_at_run',
    'ens_fail',
    'identity_fp32_nonbatch',
    'identity_int64',
    'versioned',
  ])
  const fixed = join(repository, 'big_identity', 'config.pbtxt')
  await writeFile(
    fixed,
    (await readFile(fixed, 'utf8')).replaceAll('[ -1, -1, 3 ]', '[ -1, 24, 3 ]'),
  )
  const serving = await serveConsole(t, { repository, flags: INFER })
  const browser = await openBrowser(t)
  const { page, complaints, foreign } = await openPage(browser, { port: serving.consolePort })
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])

  const plate = await drawPicture(page)

  /** The lines to copy, with the port that the test's server took. */
  const snippet = async (title: string): Promise<string> => {
    const details = page.getByText('The same request elsewhere')
    if (!(await page.getByLabel(`The request in ${title}`).isVisible())) await details.click()
    const text = await page.getByLabel(`The request in ${title}`).innerText()
    return text.replaceAll(':PORT', `:${serving.httpPort}`)
  }
  const runCurl = async (folder: string) =>
    await runProgram('sh', [
      '-c',
      `cd ${folder}\n${(await snippet('curl')).replace(/^curl|\| curl/m, (one) => `${one} -sS`)}`,
    ])
  const runPython = async (folder: string) =>
    await runProgram('sh', ['-c', `cd ${folder} && exec ${PYTHON} -`], {
      input: await snippet('Python'),
    })

  await t.test('numbers go as they are written, and come back as a table', async (t) => {
    await openModel(page, 'ens_chain')
    await send(page)
    t.same(await numbersOf(page, 'Y'), Array(16).fill(2))
    await page.getByLabel('JSON').fill('[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]')
    await send(page)
    await until('the answer is another', async () => (await numbersOf(page, 'Y'))[0] === 3)
    t.same(
      await numbersOf(page, 'Y'),
      Array.from({ length: 16 }, (_, i) => i + 3),
    )
    t.same(await axe(page), [])
    await picture(page, 'console-try-numbers')
  })

  await t.test('it shows where the time of the request went', async (t) => {
    const rows = page.getByRole('region', { name: 'Steps of this request' }).locator('tbody tr')
    const names = await rows.locator('th').allInnerTexts()
    t.match(
      names.map((name) => name.trim()),
      ['request', /^add_one_batch#0 critical/, /^add_one_batch#1 critical/],
    )
    const steps = page.getByRole('region', { name: 'Steps of this request' })
    t.match(await steps.innerText(), /queue\s+compute\s+transfer and the rest/)
    const cells = await rows.nth(2).locator('td.number').allInnerTexts()
    t.equal(cells.length, 5)
    for (const cell of cells) t.match(cell, /^[\d.,]+ (µs|ms|s)$/)
    await page.getByRole('region', { name: 'Steps of this request' }).scrollIntoViewIfNeeded()
    await picture(page, 'console-waterfall', 'Try it')
  })

  await t.test('curl and Python send the same', async (t) => {
    const folder = await tempFolder(t)
    const curl = await runCurl(folder)
    t.match(JSON.parse(curl.out), { outputs: [{ name: 'Y', data: [3, 4, 5] }] })
    await page.getByRole('button', { name: 'Copy curl' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    t.match(await page.evaluate('navigator.clipboard.readText()'), /^curl 'http:\/\/127\.0\.0\.1:/)
    if (PYTHON === undefined) return t.comment('no Python')
    t.match((await runPython(folder)).out, /Y \[\[ ?3\. +4\. +5\./)
  })

  await t.test('integers keep all their digits', async (t) => {
    await openModel(page, 'identity_int64')
    await page.getByLabel('JSON').fill('[9007199254740993]')
    await send(page)
    const cell = page.getByRole('region', { name: 'Elements of y' }).locator('td')
    t.equal(await cell.innerText(), '9007199254740993')
  })

  await t.test('a picture becomes numbers, and numbers a picture', async (t) => {
    await openModel(page, 'big_identity')
    await page.getByLabel('or a file').setInputFiles(plate)
    await page.getByText('24 x 16 pixels').waitFor()
    await send(page)
    const canvas = page.getByRole('img', { name: 'y, 24 x 16 pixels' })
    await canvas.waitFor()
    const values = page.getByRole('region', { name: 'Elements of y' })
    t.equal(await values.count(), 0, 'the picture is enough at first')
    await picture(page, 'console-try', 'Try it')
    t.same((await numbersOf(page, 'y')).slice(0, 9), [0, 0, 77, 8, 0, 77, 16, 0, 77])
    t.same(await pixel(page, 3, 2), [24, 16, 77, 255])
    t.same(await axe(page), [])
    await page.getByLabel('Values').selectOption('0 to 1')
    await send(page)
    await until('values are small', async () => (await numbersOf(page, 'y'))[2] === 0.3019608)
    t.same(await pixel(page, 3, 2), [24, 16, 77, 255])

    const npy = await download(page, 'Download y.npy')
    t.equal(npy.name, 'y.npy')
    const folder = await tempFolder(t)
    await snippet('curl')
    const made = await download(page, 'Download x.raw')
    await writeFile(join(folder, made.name), made.bytes)
    t.same(made.bytes, npy.bytes.subarray(npy.bytes.byteLength - 16 * 24 * 3 * 4))
    const curl = await runCurl(folder)
    t.match(JSON.parse(curl.out), { outputs: [{ shape: [16, 24, 3] }] })
    if (PYTHON !== undefined) t.match((await runPython(folder)).out, /0\.3019608/)

    await page.getByRole('button', { name: 'Remove file' }).click()
    const again = { name: 'y.npy', mimeType: 'application/octet-stream', buffer: npy.bytes }
    await page.getByLabel('or a file').setInputFiles(again)
    await send(page)
    await until(
      'values are those of the file',
      async () => (await numbersOf(page, 'y'))[2] === 0.3019608,
    )
  })

  await t.test('a picture for BYTES goes as it is, and comes back as one', async (t) => {
    await openModel(page, 'identity_string')
    await page.getByLabel('or a file').setInputFiles(plate)
    await send(page)
    await page.getByRole('img', { name: 'y, 24 x 16 pixels' }).waitFor()
    t.same(await pixel(page, 3, 2), [24, 16, 77, 255])
    const saved = await download(page, 'Download y.png')
    t.same(saved.bytes, plate.buffer)
    const folder = await tempFolder(t)
    await writeFile(join(folder, plate.name), plate.buffer)
    await runCurl(folder)
    const answer = await readFile(join(folder, 'answer.bin'))
    t.same(answer.subarray(answer.byteLength - plate.buffer.byteLength), plate.buffer)
    if (PYTHON !== undefined) t.match((await runPython(folder)).out, /y \[\[b'\\x89PNG/)
  })

  await t.test('text is text, whatever is in it', async (t) => {
    await openModel(page, 'identity_string')
    await page.getByLabel('Text, or a JSON array').fill(JSON.stringify([HTML, 'b']))
    await send(page)
    await page.getByLabel('y[0]').waitFor()
    t.equal(await page.getByLabel('y[0]').innerText(), HTML)
    t.not(await page.title(), 'owned')
    const svg = {
      name: `${HTML}.svg`.replaceAll('/', ''),
      mimeType: 'image/svg+xml',
      buffer: Buffer.from(
        `<svg xmlns="http://www.w3.org/2000/svg" onload="document.title='owned'"/>`,
      ),
    }
    await page.getByLabel('or a file').setInputFiles(svg)
    await send(page)
    await page.getByLabel('y', { exact: true }).waitFor()
    t.match(await page.getByLabel('y', { exact: true }).innerText(), /^<svg/)
    t.not(await page.title(), 'owned')
  })

  await t.test('of two files the later counts, and text is kept meanwhile', async (t) => {
    await openModel(page, 'identity_string')
    // A file is read when the test says.
    await page.evaluate(`(() => {
      window.read = {}
      const { arrayBuffer } = Blob.prototype
      File.prototype.arrayBuffer = function () {
        const asked = new Promise((done) => (window.read[this.name] = done))
        return asked.then(() => arrayBuffer.call(this))
      }
    })()`)
    const choose = async (name: string) => {
      const file = { name, mimeType: 'text/plain', buffer: Buffer.from(name) }
      await page.getByLabel('or a file').setInputFiles(file)
      await until('the page reads it', () => page.evaluate(`'${name}' in window.read`))
    }
    await choose('early')
    await choose('late')
    await page.getByLabel('Text, or a JSON array').fill('typed')
    await page.evaluate('window.read.late()')
    await page.getByText('late', { exact: true }).waitFor()
    await page.evaluate(
      '(window.read.early(), new Promise((done) => setTimeout(done, 300)).then(() => 0))',
    )
    t.ok(await page.getByText('late', { exact: true }).isVisible())
    await page.getByRole('button', { name: 'Remove file' }).click()
    t.equal(await page.getByLabel('Text, or a JSON array').inputValue(), 'typed')
    await page.evaluate('delete File.prototype.arrayBuffer')
  })

  await t.test('a request that memory does not hold ends', async (t) => {
    await openModel(page, 'identity_string')
    await page.getByLabel('Text, or a JSON array').fill('a')
    await page.evaluate(
      `(window.RealBlob = Blob, window.Blob = class { constructor() { throw new RangeError('Array buffer allocation failed') } }, 0)`,
    )
    await page.getByRole('button', { name: 'Send' }).click()
    const alert = page.locator('form').getByRole('alert')
    await alert.waitFor()
    t.match(await alert.innerText(), /request cannot be made: Array buffer allocation failed/)
    await page.evaluate('(window.Blob = window.RealBlob, 0)')
    await send(page)
  })

  await t.test('halves and versions', async (t) => {
    await openModel(page, 'identity_fp16')
    await page.getByLabel('JSON').fill('[1.5, -2]')
    await send(page)
    t.same(await numbersOf(page, 'y'), [1.5, -2])
    await openModel(page, 'versioned')
    const versions = page.getByLabel('Version')
    if (await versions.isVisible()) {
      await versions.selectOption('1')
      await send(page)
      t.ok(await page.getByText('Version 1 answered').isVisible())
    }
  })

  await t.test('a wrong input has an error, of the page or of the server', async (t) => {
    await openModel(page, 'ens_chain')
    const field = page.getByLabel('JSON')
    await field.fill('[1, 2')
    await page.getByText('want JSON').waitFor()
    await page.getByRole('button', { name: 'Send' }).focus()
    await page.keyboard.press('Enter')
    t.equal(await page.evaluate('document.activeElement.tagName'), 'TEXTAREA')
    t.equal(await field.getAttribute('aria-invalid'), 'true')
    t.same(await axe(page), [])
    await field.fill('[[1, 2]]')
    await page.getByText("input 'X': got shape [1,2], want [-1,16]").waitFor()
    await field.fill(JSON.stringify(Array(16).fill('a')))
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('alert').waitFor()
    t.match(
      await page.getByRole('alert').innerText(),
      /Unable to parse 'data'.* MALFORMED_MESSAGE/s,
    )
    await openModel(page, 'fail_at_run')
    await page.getByLabel('JSON').fill('[7, 7, 7]')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('alert').waitFor()
    t.match(await page.getByRole('alert').innerText(), /ENGINE_FAILED/)
    await openModel(page, 'ens_fail')
    await page.getByLabel('JSON').fill('[7, 7, 7]')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('alert').waitFor()
    t.match(await page.getByRole('alert').innerText(), /ENGINE_FAILED/)
  })

  await t.test('all of it by keyboard', async (t) => {
    await openModel(page, 'ens_chain')
    await page.getByLabel('JSON').focus()
    const reached: string[] = []
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press('Tab')
      reached.push(
        await page.evaluate('document.activeElement.type ?? document.activeElement.tagName'),
      )
    }
    t.same(reached, ['file', 'submit', 'SUMMARY'])
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByText('answered in').waitFor()
  })

  await t.test('it is as readable in the dark', async (t) => {
    const dark = await openPage(browser, { port: serving.consolePort, scheme: 'dark' })
    await openModel(dark.page, 'identity_string')
    await dark.page.getByLabel('or a file').setInputFiles(plate)
    await send(dark.page)
    await dark.page.getByText('The same request elsewhere').click()
    t.same(await axe(dark.page), [])
    t.same(dark.complaints, [])
  })

  await t.test('nothing was asked of other hosts, and only refusals were errors', async (t) => {
    t.same(
      complaints.filter((one) => !/status of (400|500)/.test(one)),
      [],
    )
    t.same(foreign, [])
  })
})

await t.test('a server that goes away with a request', { skip }, async (t) => {
  const repository = await copyModels(t, ['slow', 'add_one_batch'])
  const serving = await serveConsole(t, { repository, flags: INFER })
  const { page } = await openPage(await openBrowser(t), { port: serving.consolePort })
  await openModel(page, 'slow')
  await page.getByRole('group', { name: 'rounds' }).getByRole('textbox').fill('1000000')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('Sending').waitFor()
  await serving.process.stop('SIGKILL')
  await page.locator('form').getByRole('alert').waitFor()
  t.match(await page.locator('form').getByRole('alert').innerText(), /does not answer/)
  t.equal(
    await page.getByRole('group', { name: 'rounds' }).getByRole('textbox').inputValue(),
    '1000000',
  )
  await serveConsole(t, { repository, flags: INFER, port: serving.consolePort })
  await page.getByRole('group', { name: 'rounds' }).getByRole('textbox').fill('1')
  await send(page)
})

await t.test('without the flag the console only shows', { skip }, async (t) => {
  const repository = await copyModels(t, ['add_one_batch'])
  const { consolePort: port } = await serveConsole(t, { repository })
  const { page, complaints } = await openPage(await openBrowser(t), { port })
  await openModel(page, 'add_one_batch')
  await page.getByText('--console-infer').waitFor()
  t.equal(await page.getByRole('button', { name: 'Send' }).count(), 0)
  t.same(complaints, [])
  const path = '/console/api/models/add_one_batch/infer'
  t.equal((await restCall(port, 'POST', path, { body: '{}' })).status, 404)
})

await t.test('tensors with names that are HTML', { skip }, async (t) => {
  const repository = await tempFolder(t)
  await mkdir(join(repository, 'named', '1'), { recursive: true })
  const name = HTML.replaceAll('"', '\\"')
  await writeFile(
    join(repository, 'named', 'config.pbtxt'),
    `backend: "python" input { name: "${name}" data_type: TYPE_FP32 dims: 1 } output { name: "${name}" data_type: TYPE_FP32 dims: 1 }`,
  )
  await writeFile(
    join(repository, 'named', '1', 'model.py'),
    `import triton_python_backend_utils as pb
class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb.get_input_tensor_by_name(one, """${HTML}""") for one in requests]
        return [pb.InferenceResponse([pb.Tensor("""${HTML}""", one.as_numpy())]) for one in tensors]
`,
  )
  if (PYTHON === undefined) return t.comment('no Python')
  const flags = [...INFER, `--backend-config=python,interpreter=${PYTHON}`]
  const { consolePort: port } = await serveConsole(t, { repository, flags })
  const { page, complaints } = await openPage(await openBrowser(t), { port })
  await openModel(page, 'named')
  await send(page)
  t.equal(await page.getByRole('heading', { level: 3 }).first().innerText(), `${HTML} FP32 [1]`)
  t.same((await download(page, 'Download')).name.includes('/'), false)
  t.not(await page.title(), 'owned')
  t.same(complaints, [])
})

/** Reads what a canvas shows at a place. */
function pixel(page: Page, x: number, y: number): Promise<unknown> {
  return page.evaluate(
    `[...document.querySelector('canvas').getContext('2d').getImageData(${x}, ${y}, 1, 1).data]`,
  )
}

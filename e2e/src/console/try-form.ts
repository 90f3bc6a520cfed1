import type { Page } from 'playwright-core'

/** With an empty form. */
export async function openModel(page: Page, model: string): Promise<void> {
  await page.goto('/console#/')
  // Else a page on a busy machine may never have shown it, and keeps the form.
  await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
  await page.goto(`/console#/models/${model}`)
  await page.getByRole('heading', { level: 1, name: model }).waitFor()
  await page.getByRole('heading', { name: 'Try it' }).waitFor()
}

/** Sends the form, and waits for the answer. */
export async function send(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('answered in').waitFor()
}

/** The numbers in the table of an output, which is closed where there is a picture. */
export async function numbersOf(page: Page, output: string): Promise<readonly number[]> {
  const closed = page.locator('.output details:not([open]) > summary')
  if ((await closed.count()) > 0) await closed.click()
  const cells = page.getByRole('region', { name: `Elements of ${output}` }).locator('td')
  return (await cells.allInnerTexts()).map(Number)
}

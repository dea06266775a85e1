/**
 * A line whose words change while one points keeps the most height it had: what stands below must not move away from
 * under the pointer, or another thing would be pointed at, whose words are of another length.
 */
export function steady(node: HTMLElement) {
  let width = 0
  const hold = () => {
    node.style.minHeight = `${node.offsetHeight}px`
  }
  const watch = new ResizeObserver(() => {
    if (node.clientWidth === width) hold()
    else
      requestAnimationFrame(() => {
        node.style.minHeight = ''
        hold()
      })
    width = node.clientWidth
  })
  watch.observe(node)
  return { destroy: () => watch.disconnect() }
}

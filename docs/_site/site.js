// Names for the copy buttons' landmarks, and tables that scroll by keyboard: the theme adds both while a page is read.
new MutationObserver(() => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
    nav.setAttribute("aria-label", `Code: ${nav.parentElement.id}`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((table) => {
    table.tabIndex = 0;
  });
}).observe(document.body, { childList: true, subtree: true });

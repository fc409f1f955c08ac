"""Views of the sample project: orders that enqueue in their transaction, and small answers."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_safe

from config.demo.forms import OrderForm
from config.demo.models import Order
from config.demo.payment import PaymentRefused, charge
from config.demo.tasks import pack_order
from jobs.models import Job


@require_http_methods(["GET", "HEAD", "POST"])
def orders(request: HttpRequest) -> HttpResponse:
    """Place an order: the order, its receipt job and its packing job are stored together or not at all."""
    form = OrderForm(request.POST or None)
    if request.method != "POST":
        return render(request, "demo/order.html", {"form": form})
    if not form.is_valid():
        return _refused(request, form, status=400)
    try:
        with transaction.atomic():
            order = form.save()  # its post_save receiver enqueues the receipt
            job = pack_order.enqueue(order.pk)
            charge(order)
    except PaymentRefused as refused:
        form.add_error("quantity", str(refused))
        return _refused(request, form, status=402)
    return _placed(request, order, job)


def _refused(request: HttpRequest, form: OrderForm, status: int) -> HttpResponse:
    if _wants_page(request):
        return render(request, "demo/order.html", {"form": form}, status=status)
    return JsonResponse({"errors": form.errors}, status=status)


def _placed(request: HttpRequest, order: Order, job: Job) -> HttpResponse:
    if not _wants_page(request):
        return JsonResponse({"order": order.pk, "job": job.pk}, status=201)
    receipt = Job.objects.filter(unique_key=f"receipt-{order.pk}").order_by("-pk")[:1]
    messages.success(request, _story(order, [*receipt, job]))
    return redirect("demo-orders")


def _story(order: Order, jobs: list[Job]) -> SafeString:
    links = [(reverse("admin:jobs_job_change", args=[one.pk]), one.task.rpartition(".")[2], one.pk) for one in jobs]
    return format_html(
        "Order {} is stored, and so are its jobs: {}.",
        order.pk,
        format_html_join(" and ", '<a href="{}">{} #{}</a>', links),
    )


def _wants_page(request: HttpRequest) -> bool:
    """A browser says so; whoever takes anything, such as curl, gets JSON."""
    return request.get_preferred_type(["application/json", "text/html"]) == "text/html"


@require_safe
def no_icon(request: HttpRequest) -> HttpResponse:
    """Browsers ask for it at each site: an answer, so that the log does not fill with warnings."""
    return HttpResponse(status=204, headers={"Cache-Control": "max-age=86400"})


@require_safe
def ping(request: HttpRequest) -> HttpResponse:
    return HttpResponse("pong\n", content_type="text/plain")
